"""WholeObjectAllocator: objects such as images, which are used again as a whole or not at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from sys import is_finalizing

from landbridge.errors import InputError
from landbridge.locks import new_lock
from landbridge.memory.allocators.adaptor import Downstream
from landbridge.memory.allocators.base import Allocator, Block, NdSize, Queue, QueuedUse, Size, wait_for
from landbridge.memory.allocators.keepers import register_keeper

_Key = tuple[NdSize, int]


class WholeObjectAllocator(Downstream):
    """Keeps the blocks that come back, and hands each out again only for the extents, dtype and alignment it was made
    for: a driver makes an image slowly, and none can be cut out of another. They go back to upstream with it."""

    def __init__(self, upstream: Allocator) -> None:
        super().__init__(upstream)
        self._kept: dict[_Key, list[tuple[Block, tuple[QueuedUse, ...]]]] = {}
        self._lent: dict[Block, _Key] = {}
        self._lock = new_lock()
        # Blocks come back in finalizers too, also while this thread holds the lock: they are sorted in later.
        self._returned: deque[tuple[_Key, Block, tuple[QueuedUse, ...]]] = deque()
        register_keeper(self)

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """An object that came back, when one was made for just this, else a new one of ``upstream``."""
        if not isinstance(size, NdSize):
            raise InputError(
                f"{self.device} {self.scope} holds objects and was asked for {size} bytes; ask for extents and a dtype"
            )
        key = size, alignment
        with self._lock:
            self._sort_in()
            kept = self._kept.get(key)
            found = kept.pop() if kept else None
        if found is None:
            block = self.upstream.allocate(size, alignment, queue)
        else:
            before, uses = found
            if any(use.queue != queue for use in uses):
                wait_for(uses)
                uses = ()
            block = Block(before.region, before.nbytes, uses)
        with self._lock:
            self._lent[block] = key
        return block

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Keep ``block`` for the next request like the one it was for; raises InputError for one that is not out."""
        key = self._lent.pop(block, None)
        if key is None:
            raise InputError(f"{block} is not out of this allocator; give a block back once, to the one it came from")
        self._returned.append((key, block, tuple(uses)))

    def trim(self) -> int:
        """Give the objects that nobody has back to ``upstream``; returns their bytes."""
        with self._lock:
            self._sort_in()
            kept = [found for objects in self._kept.values() for found in objects]
            self._kept.clear()
        for block, uses in kept:
            self.upstream.deallocate(block, uses)
        return sum(block.nbytes for block, _ in kept)

    def _sort_in(self) -> None:
        """Take in what came back; the lock must be held."""
        while self._returned:
            key, block, uses = self._returned.popleft()
            self._kept.setdefault(key, []).append((block, uses))

    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:  # modules may be empty by then
        # Whoever has an object to give back holds its allocator; while the interpreter exits the device may be gone.
        if not is_finalizing() and hasattr(self, "_returned"):
            self.trim()
