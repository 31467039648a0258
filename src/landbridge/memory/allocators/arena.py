"""ArenaAllocator: blocks one behind the other in a single one, all given back together."""

from __future__ import annotations

from threading import RLock

from landbridge.device.device import Device
from landbridge.device.space import Region
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.allocators.base import Allocator, Block, round_up

_ALIGNMENT = 4096  # of the arena; requests beyond it cannot be served


class ArenaAllocator:
    """``nbytes`` bytes of ``upstream``, handed out in order.

    A block that comes back is not used again before all have: then the arena starts over. ``close()`` gives it
    to upstream.
    """

    def __init__(self, upstream: Allocator, nbytes: int) -> None:
        self._upstream = upstream
        self._block: Block | None = upstream.allocate(nbytes, _ALIGNMENT)
        self._size = nbytes
        self._top = self._live = 0
        self._lock = RLock()  # blocks come back in finalizers too, also while this thread is in allocate

    @property
    def device(self) -> Device:
        """Where the blocks lie."""
        return self._upstream.device

    @property
    def scope(self) -> str:
        """The memory scope of the blocks."""
        return self._upstream.scope

    @property
    def used_bytes(self) -> int:
        """Bytes from the start of the arena to the end of the last block."""
        return self._top

    def allocate(self, nbytes: int, alignment: int) -> Block:
        """The next ``nbytes`` bytes; raises OutOfMemoryError when the arena is full."""
        with self._lock:
            if self._block is None:
                raise InputError("this arena was closed; make another one")
            begin = round_up(self._top, alignment)
            if alignment > _ALIGNMENT or begin + nbytes > self._size:
                raise OutOfMemoryError(
                    f"arena of {self._size} bytes on {self.device} {self.scope}: {nbytes} bytes aligned to {alignment} "
                    f"asked, {self._size - self._top} are left and alignments up to {_ALIGNMENT} are legal; give its "
                    "blocks back or make a larger one"
                )
            self._top = begin + nbytes
            self._live += 1
            region = self._block.region
            return Block(Region(region.space, region.byte_offset + begin), nbytes)

    def deallocate(self, block: Block) -> None:
        """Count ``block`` as given back; the last one empties the arena."""
        with self._lock:
            self._live -= 1
            if self._live == 0:
                self._top = 0

    def close(self) -> None:
        """Give the arena back to upstream; raises InputError while blocks of it are out. Twice is once."""
        with self._lock:
            if self._live:
                raise InputError(f"{self._live} blocks of this arena are still out; give them back first")
            block, self._block = self._block, None
        if block is not None:
            self._upstream.deallocate(block)
