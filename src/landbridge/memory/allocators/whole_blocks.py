"""WholeBlockAllocator: the base of allocators whose blocks are reused whole or not at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from sys import is_finalizing

from landbridge.device.api import Space
from landbridge.errors import InputError
from landbridge.memory.allocators.adaptor import Downstream
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size, wait_for
from landbridge.memory.allocators.keepers import register_keeper
from landbridge.process.locks import new_lock
from landbridge.records import record


@record(frozen=True, slots=True)
class _Purpose:
    """The requests that a block can serve: those of ``key`` whose alignment is at most ``alignment`` bytes."""

    key: Hashable
    alignment: int


@record(frozen=True, slots=True, eq=False)
class _Retained:
    """A ``block`` that came back, for the requests of ``purpose``; queued work on it (``uses``) may be pending.
    ``since`` numbers the returns; -1 for a block that is to be released first.
    """

    block: Block
    purpose: _Purpose
    uses: tuple[QueuedUse, ...]
    since: int


class WholeBlockAllocator(Downstream):
    """Retains blocks that come back, and uses each again, whole, for requests of the same key.

    It retains no more blocks, and no more bytes, than were in use at one time. Those that are unused longest go back to
    upstream first, and all of them when the allocator is collected.
    """

    def __init__(self, upstream: Allocator) -> None:
        super().__init__(upstream)
        self._retained: dict[Hashable, list[_Retained]] = {}  # in the order in which they came back
        self._borrowed: dict[Block, _Purpose | None] = {}
        self._used_bytes = self._most_bytes = self._most_blocks = 0
        self._sequence = count()
        self._lock = new_lock()
        # Finalizers give blocks back too, also while this thread is in a method: those are sorted in later.
        self._returned: deque[tuple[Block, _Purpose | None, tuple[QueuedUse, ...]]] = deque()
        self._is_busy = False
        register_keeper(self)

    def key_of(self, size: Size) -> Hashable:
        """Returns the key of a request for ``size``; a block serves all requests of its key. Raises InputError for
        bytes where the allocator takes an ``NdSize``, and the other way round.
        """
        raise NotImplementedError

    def fresh(self, size: Size, alignment: int, queue: Queue | None) -> tuple[Block, bool]:
        """Returns a new block for ``size``, and whether it can serve every request of its key; raises
        OutOfMemoryError.
        """
        return self.upstream.allocate(size, alignment, queue), True

    @property
    def retained_bytes(self) -> int:
        """Returns the bytes that are retained unused."""
        with self._alone():
            return sum(retained.block.nbytes for retained in self._all())

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a retained block of the same key and at least this alignment, else a new one; raises as ``fresh``.

        Pending work on a retained block is waited for, unless all of it is on ``queue``: then the block carries it.
        """
        purpose = _Purpose(self.key_of(size), max(alignment, 1))
        with self._alone():
            found, surplus = self._take(purpose), self._surplus()
        self._give_back(surplus)
        if found is None:
            block, is_retained = self.fresh(size, alignment, queue)
            borrowed = purpose if is_retained else None
        else:
            uses = found.uses
            if queue is None or any(use.queue != queue for use in uses):
                wait_for(uses)
                uses = ()
            block, borrowed = Block(found.block.region, found.block.nbytes, uses), found.purpose
        with self._alone():
            self._borrowed[block] = borrowed
            self._used_bytes += block.nbytes
            self._most_bytes = max(self._most_bytes, self._used_bytes)
            self._most_blocks = max(self._most_blocks, len(self._borrowed))
        return block

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Retain ``block`` for the next request of its key; raises InputError for a block that is not out."""
        purpose = self._borrowed.pop(block, _NOT_OUT)
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
        """Mark the block of ``space``, which others use too from now on: when it comes back, it is released to upstream
        instead of being retained.
        """
        for block in list(self._borrowed):
            if block in self._borrowed and block.region.space == space:
                self._borrowed[block] = None

    def trim(self) -> int:
        """Give the unused blocks back to ``upstream``; returns their bytes."""
        with self._alone():
            retained = self._all()
            self._retained.clear()
        return self._give_back(retained)

    def _give_back(self, retained: Sequence[_Retained]) -> int:
        for each in retained:
            self.upstream.deallocate(each.block, each.uses)
        return sum(each.block.nbytes for each in retained)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock, with returned blocks sorted in; blocks that finalizers return meanwhile are left to the next
        holder.
        """
        with self._lock:
            self._is_busy = True
            try:
                self._sort_in()
                yield
            finally:
                self._is_busy = False

    def _all(self) -> list[_Retained]:
        return [retained for blocks in self._retained.values() for retained in blocks]

    def _take(self, purpose: _Purpose) -> _Retained | None:
        """Removes and returns the block that came back last of those that serve ``purpose``; None where there
        is none.
        """
        retained = self._retained.get(purpose.key, [])
        for position in reversed(range(len(retained))):
            if retained[position].purpose.alignment >= purpose.alignment:
                return retained.pop(position)
        return None

    def _sort_in(self) -> None:
        while self._returned:
            block, purpose, uses = self._returned.popleft()
            self._used_bytes -= block.nbytes
            # A block that serves one request alone is retained as such, and is released first.
            retained = _Retained(block, purpose or _NOBODY, uses, next(self._sequence) if purpose else -1)
            self._retained.setdefault(retained.purpose.key, []).append(retained)

    def _surplus(self) -> list[_Retained]:
        """Removes and returns the retained blocks to release: those beyond the most blocks and bytes that were in use
        at one time, longest unused first, without blocks that queued work uses.
        """
        retained, surplus = self._all(), list[_Retained]()
        nbytes, left = sum(each.block.nbytes for each in retained), len(retained)
        for each in sorted(retained, key=lambda each: each.since):
            if each.purpose is not _NOBODY and nbytes <= self._most_bytes and left <= self._most_blocks:
                break
            if all(use.is_over() for use in each.uses):
                self._retained[each.purpose.key].remove(each)
                surplus.append(each)
                nbytes, left = nbytes - each.block.nbytes, left - 1
        self._retained = {key: blocks for key, blocks in self._retained.items() if blocks}
        return surplus

    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:  # this module may be cleared by then
        # Whoever has a block to give back holds its allocator; while the interpreter exits the device may be gone.
        if not is_finalizing() and hasattr(self, "_is_busy"):
            self.trim()


_NOBODY = _Purpose(None, 0)
_NOT_OUT = _Purpose(None, 0)
