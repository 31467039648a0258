"""ArenaAllocator: consecutive blocks of one larger block, which are all given back together."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.device.api import Region
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.allocators.adaptor import Downstream
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size, flat_bytes, round_up, wait_for
from landbridge.process.locks import new_lock

_ALIGNMENT = 4096  # capacity of the arena; requests beyond it fail


class ArenaAllocator(Downstream):
    """Hands out ``nbytes`` bytes of ``upstream`` in order, each block at a multiple of ``granule``.

    A block that comes back is not used again before all have come back. Then the arena starts over, and its first
    request waits for work that was pending on the blocks. ``close()`` gives the bytes back to upstream.
    """

    def __init__(self, upstream: Allocator, nbytes: int, *, granule: int = 64) -> None:
        super().__init__(upstream)
        self._granule = granule
        self._block: Block | None = upstream.allocate(nbytes, _ALIGNMENT)
        self._size = nbytes
        self._top = 0
        self._live: set[Block] = set()
        self._uses: list[QueuedUse] = []
        self._lock = new_lock()  # finalizers give blocks back too, also while this thread is in allocate

    @property
    def used_bytes(self) -> int:
        """Returns the bytes from the start of the arena to the end of the last block."""
        return self._top

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns the next ``size`` bytes; raises OutOfMemoryError when the arena is full."""
        nbytes = flat_bytes(size, self)
        with self._lock:
            if self._block is None:
                raise InputError("this arena was closed; make another one")
            begin = round_up(self._top, max(alignment, self._granule))
            if alignment > _ALIGNMENT or begin + nbytes > self._size:
                raise OutOfMemoryError(
                    f"arena of {self._size} bytes on {self.device} {self.scope}: {nbytes} bytes aligned to {alignment} "
                    f"asked, {self._size - self._top} are left and alignments up to {_ALIGNMENT} are legal; give its "
                    "blocks back or make a larger one"
                )
            if not self._live:
                uses, self._uses = self._uses, []
                wait_for(uses)
            region = self._block.region
            block = Block(Region(region.space, region.byte_offset + begin), nbytes)
            self._top = begin + nbytes
            self._live.add(block)
            return block

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Count ``block`` as given back; the last one empties the arena. Raises InputError for a block that is
        not out.
        """
        with self._lock:
            if block not in self._live:
                raise InputError(f"{block} is not out of this arena; give a block back once, where it came from")
            self._live.remove(block)
            self._uses += uses
            if not self._live:
                self._top = 0

    def close(self) -> None:
        """Give the arena back to upstream; raises InputError while blocks of it are out. A second call does nothing."""
        with self._lock:
            if self._live:
                raise InputError(f"{len(self._live)} blocks of this arena are still out; give them back first")
            block, self._block = self._block, None
            uses, self._uses = self._uses, []
        if block is not None:
            self.upstream.deallocate(block, uses)
