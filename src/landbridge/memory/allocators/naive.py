"""NaiveAllocator: each block is one allocation of the device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar

from landbridge.device.api import Device, Region, Space
from landbridge.device.granted import check_alignment_of, granted
from landbridge.device.protocols import NdSpaces, SharedMemory
from landbridge.errors import DeviceLostError, InputError, UnsupportedError
from landbridge.memory.allocators.base import Block, NdSize, Queue, QueuedUse, Size, round_up, wait_for
from landbridge.memory_kind import normalize_scope
from landbridge.process.process_bound import ProcessBound
from landbridge.shapes.physical import nd_bytes


class NaiveAllocator(ProcessBound):
    """Allocates a Space of the device for each block. To free a block it waits for the last use of it.

    It serves every scope, n-D ones too. ``shared``: blocks are memory that other processes and devices can map, for
    devices that allocate such memory separately.
    """

    _instead: ClassVar[str] = "name an allocator in memory_cfg where it is used"

    def __init__(self, device: Device, scope: str = "global", *, shared: bool = False) -> None:
        self.device = device
        self.scope = normalize_scope(scope)
        self._kind = device.memory_kind(scope)
        self._shared = device.capability(SharedMemory) if shared else None

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a block that is one Space, with ``size`` rounded up to the size multiple of the kind (n-D: each row).

        Raises InputError when the request has other dimensions than the scope, UnsupportedError when the device cannot
        make n-D spaces.
        """
        effective = max(alignment, self._kind.alignment)
        if isinstance(size, NdSize):
            nbytes = nd_bytes(self._kind, size.physical_shape, size.dtype)
            return Block(Region(self._nd_space(size, effective)), nbytes)
        index, nbytes = self.device.index, round_up(max(size, 1), self._kind.size_multiple)
        method = "alloc_data_space" if self._shared is None else "alloc_shared_space"
        with self.device.state.submitting(f"an allocation of {nbytes} bytes of scope {self.scope!r}", method):
            if self._shared is not None:
                space = self._shared.alloc_shared_space(index, nbytes, effective, self.scope)
            else:
                space = self.device.api.alloc_data_space(index, nbytes, effective, self.scope, None)
        found = granted(space, self.device, method)
        try:
            check_alignment_of(found, effective, method)
        except BaseException:
            self.deallocate(Block(Region(found), nbytes))
            raise
        return Block(Region(found), nbytes)

    def _nd_space(self, size: NdSize, alignment: int) -> Space:
        if len(size.physical_shape) != self._kind.ndim:
            raise InputError(
                f"{self.device} {self.scope}: {size.dtype}{list(size.physical_shape)} has {len(size.physical_shape)} "
                f"physical dimensions, the scope has {self._kind.ndim}; set the tensor's axis separators accordingly"
            )
        api = self.device.capability(NdSpaces)
        if api is None:
            raise UnsupportedError(
                f"{self.device} {self.scope}: the device has no alloc_data_space_nd; ask for bytes of a flat scope"
            )
        with self.device.state.submitting(f"an allocation of {size} of scope {self.scope!r}", "alloc_data_space_nd"):
            space = api.alloc_data_space_nd(self.device.index, size.physical_shape, size.dtype, self.scope, alignment)
        return granted(space, self.device, "alloc_data_space_nd")

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Wait for ``uses`` and free the Space of ``block``. Does nothing where the device is lost, and its memory with
        it.
        """
        if self.device.is_lost:
            return
        wait_for(uses)
        with suppress(DeviceLostError), self.device.state.watching(method="free_data_space"):
            self.device.api.free_data_space(block.region.space)
