"""WholeBlockAllocator: blocks that are used again as a whole or not at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from sys import is_finalizing

from landbridge.device.api import Space
from landbridge.errors import InputError
from landbridge.locks import new_lock
from landbridge.memory.allocators.adaptor import Downstream
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size, wait_for
from landbridge.memory.allocators.keepers import register_keeper
from landbridge.records import record


@record(frozen=True, slots=True)
class _Purpose:
    """What a block was made for: requests of ``key``, aligned to ``alignment`` at most."""

    key: Hashable
    alignment: int


@record(frozen=True, slots=True, eq=False)
class _Kept:
    """A block that came back as the ``since``-th one, with ``uses`` that may be pending."""

    block: Block
    purpose: _Purpose
    uses: tuple[QueuedUse, ...]
    since: int


class WholeBlockAllocator(Downstream):
    """Keeps the blocks that come back, and hands each out again for a request like the one it was made for.

    Unused it keeps no more of them, and no more bytes, than were in use at one time: what is unused longest goes back
    to upstream, as all do with the allocator.
    """

    def __init__(self, upstream: Allocator) -> None:
        super().__init__(upstream)
        self._kept: dict[Hashable, list[_Kept]] = {}  # in the order in which they came back
        self._lent: dict[Block, _Purpose | None] = {}
        self._used_bytes = self._most_bytes = self._most_blocks = 0
        self._turns = count()
        self._lock = new_lock()
        # Blocks come back in finalizers too, also while this thread is in the middle of something: sorted in later.
        self._returned: deque[tuple[Block, _Purpose | None, tuple[QueuedUse, ...]]] = deque()
        self._is_busy = False
        register_keeper(self)

    def key_of(self, size: Size) -> Hashable:
        """Requests of one key have the same blocks; raises InputError for a size that is none of this allocator's."""
        raise NotImplementedError

    def fresh(self, size: Size, alignment: int, queue: Queue | None) -> tuple[Block, bool]:
        """A new block for ``size``, and whether it serves all requests of its key; raises OutOfMemoryError."""
        return self.upstream.allocate(size, alignment, queue), True

    @property
    def kept_bytes(self) -> int:
        """Bytes that nobody uses."""
        with self._alone():
            return sum(kept.block.nbytes for kept in self._all())

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """A block that came back, where one was made for the like of this, else a new one."""
        purpose = _Purpose(self.key_of(size), max(alignment, 1))
        with self._alone():
            found, surplus = self._take(purpose), self._surplus()
        self._give_back(surplus)
        if found is None:
            block, is_kept = self.fresh(size, alignment, queue)
            lent = purpose if is_kept else None
        else:
            uses = found.uses
            if queue is None or any(use.queue != queue for use in uses):
                wait_for(uses)
                uses = ()
            block, lent = Block(found.block.region, found.block.nbytes, uses), found.purpose
        with self._alone():
            self._lent[block] = lent
            self._used_bytes += block.nbytes
            self._most_bytes = max(self._most_bytes, self._used_bytes)
            self._most_blocks = max(self._most_blocks, len(self._lent))
        return block

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Keep ``block`` for the next request like the one it was for; raises InputError for one that is not out."""
        purpose = self._lent.pop(block, _NOT_OUT)
        if purpose is _NOT_OUT:
            raise InputError(f"{block} is not out of this allocator; give a block back once, to the one it came from")
        self._returned.append((block, purpose, (*block.uses, *uses)))
        if not self._is_busy and self._lock.acquire(blocking=False):
            try:
                with self._alone():
                    surplus = self._surplus()
            finally:
                self._lock.release()
            self._give_back(surplus)

    def retire(self, space: Space) -> None:
        """Give ``space``, which others have too from now on, back to upstream when its block comes back."""
        for block in list(self._lent):
            if block in self._lent and block.region.space == space:
                self._lent[block] = None

    def trim(self) -> int:
        """Give the blocks that nobody has back to ``upstream``; returns their bytes."""
        with self._alone():
            kept = self._all()
            self._kept.clear()
        return self._give_back(kept)

    def _give_back(self, kept: Sequence[_Kept]) -> int:
        for each in kept:
            self.upstream.deallocate(each.block, each.uses)
        return sum(each.block.nbytes for each in kept)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """With what came back sorted in; finalizers that come meanwhile leave the rest to the next one."""
        with self._lock:
            self._is_busy = True
            try:
                self._sort_in()
                yield
            finally:
                self._is_busy = False

    def _all(self) -> list[_Kept]:
        return [kept for blocks in self._kept.values() for kept in blocks]

    def _take(self, purpose: _Purpose) -> _Kept | None:
        """The block that came back last of those that serve."""
        kept = self._kept.get(purpose.key, [])
        for position in reversed(range(len(kept))):
            if kept[position].purpose.alignment >= purpose.alignment:
                return kept.pop(position)
        return None

    def _sort_in(self) -> None:
        while self._returned:
            block, purpose, uses = self._returned.popleft()
            self._used_bytes -= block.nbytes
            # What is for nobody else is kept as such, and is the first to go.
            kept = _Kept(block, purpose or _NOBODY, uses, next(self._turns) if purpose else -1)
            self._kept.setdefault(kept.purpose.key, []).append(kept)

    def _surplus(self) -> list[_Kept]:
        """What is kept beyond what was in use at one time, and no work is pending on, taken out."""
        kept, surplus = self._all(), list[_Kept]()
        nbytes, left = sum(each.block.nbytes for each in kept), len(kept)
        for each in sorted(kept, key=lambda each: each.since):
            if each.purpose is not _NOBODY and nbytes <= self._most_bytes and left <= self._most_blocks:
                break
            if all(use.is_over() for use in each.uses):
                self._kept[each.purpose.key].remove(each)
                surplus.append(each)
                nbytes, left = nbytes - each.block.nbytes, left - 1
        self._kept = {key: blocks for key, blocks in self._kept.items() if blocks}
        return surplus

    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:  # modules may be empty by then
        # Whoever has a block to give back holds its allocator; while the interpreter exits the device may be gone.
        if not is_finalizing() and hasattr(self, "_is_busy"):
            self.trim()


_NOBODY = _Purpose(None, 0)
_NOT_OUT = _Purpose(None, 0)
