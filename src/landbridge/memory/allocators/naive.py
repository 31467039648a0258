"""NaiveAllocator: every block is an allocation of the device's own."""

from __future__ import annotations

from contextlib import suppress

from landbridge.device.device import Device
from landbridge.device.protocols import SharedMemory
from landbridge.device.space import Region
from landbridge.errors import DeviceLostError
from landbridge.memory.allocators.base import Block, round_up
from landbridge.memory_kind import normalize_scope


class NaiveAllocator:
    """Asks the device for each block and gives each back at once.

    ``shared``: blocks that other processes and devices can map, where the device makes a difference.
    """

    def __init__(self, device: Device, scope: str = "global", *, shared: bool = False) -> None:
        self.device = device
        self.scope = normalize_scope(scope)
        self._kind = device.memory_kind(scope)
        self._shared = device.capability(SharedMemory) if shared else None

    def allocate(self, nbytes: int, alignment: int) -> Block:
        """A Space of its own, of a size rounded up to the kind's multiple."""
        size = round_up(max(nbytes, 1), self._kind.size_multiple)
        index, effective = self.device.index, max(alignment, self._kind.alignment)
        with self.device.state.submitting(f"an allocation of {size} bytes of scope {self.scope!r}"):
            if self._shared is not None:
                space = self._shared.alloc_shared_space(index, size, effective, self.scope)
            else:
                space = self.device.api.alloc_data_space(index, size, effective, self.scope, None)
        return Block(Region(space), size)

    def deallocate(self, block: Block) -> None:
        """Free the Space of ``block``, unless it was lost with its device."""
        if self.device.is_lost:
            return
        with suppress(DeviceLostError), self.device.state.watching():
            self.device.api.free_data_space(block.region.space)
