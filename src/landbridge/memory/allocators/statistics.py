"""StatisticsAllocator: counts allocations, in total and between two points of a program."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import fields

from landbridge.errors import InputError
from landbridge.memory.allocators.adaptor import Adaptor
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size
from landbridge.process.locks import new_lock
from landbridge.records import record


@record(frozen=True, slots=True)
class Counters:
    """Counts of blocks and bytes: out now, the most out at one time, and allocated in total."""

    current_count: int = 0
    current_bytes: int = 0
    peak_count: int = 0
    peak_bytes: int = 0
    total_count: int = 0
    total_bytes: int = 0


@record(slots=True)
class _Tally:
    """Counters that can be changed while blocks go out and come back."""

    current_count: int = 0
    current_bytes: int = 0
    peak_count: int = 0
    peak_bytes: int = 0
    total_count: int = 0
    total_bytes: int = 0

    def out(self, nbytes: int) -> None:
        """Count a block that goes out."""
        self.current_count += 1
        self.current_bytes += nbytes
        self.total_count += 1
        self.total_bytes += nbytes
        self.peak_count = max(self.peak_count, self.current_count)
        self.peak_bytes = max(self.peak_bytes, self.current_bytes)

    def back(self, nbytes: int) -> None:
        """Count a block that comes back."""
        self.current_count -= 1
        self.current_bytes -= nbytes

    def include(self, inner: _Tally) -> None:
        """Add the counts of ``inner``, which began when this tally paused."""
        self.peak_count = max(self.peak_count, self.current_count + inner.peak_count)
        self.peak_bytes = max(self.peak_bytes, self.current_bytes + inner.peak_bytes)
        self.current_count += inner.current_count
        self.current_bytes += inner.current_bytes
        self.total_count += inner.total_count
        self.total_bytes += inner.total_bytes

    def read(self) -> Counters:
        """Returns the counts up to now."""
        return Counters(*(getattr(self, field.name) for field in fields(Counters)))


class StatisticsAllocator(Adaptor):
    """Counts the blocks that pass through; ``push_counters`` and ``pop_counters`` measure a part of the program."""

    def __init__(self, upstream: Allocator) -> None:
        super().__init__(upstream)
        self._stack = [_Tally()]
        self._lock = new_lock()
        # Finalizers give blocks back too, also while this thread holds the lock: those are counted later.
        self._returned: deque[int] = deque()

    @property
    def counters(self) -> Counters:
        """Returns the counts since the last ``push_counters``, or from the beginning."""
        with self._lock:
            return self._settled().read()

    def push_counters(self) -> Counters:
        """Start to count from zero, until ``pop_counters``; returns the counts up to now."""
        with self._lock:
            before = self._settled().read()
            self._stack.append(_Tally())
            return before

    def pop_counters(self) -> Counters:
        """End what ``push_counters`` began and return its counters, which are added to the enclosing ones."""
        with self._lock:
            if len(self._stack) == 1:
                raise InputError("pop_counters without a push_counters before")
            inner = self._settled()
            self._stack.pop()
            self._stack[-1].include(inner)
            return inner.read()

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a block of ``upstream``, and counts it."""
        block = self.upstream.allocate(size, alignment, queue)
        with self._lock:
            self._settled().out(block.nbytes)
        return block

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Give ``block`` back to ``upstream``, and count it."""
        self.upstream.deallocate(block, uses)
        self._returned.append(block.nbytes)

    def _settled(self) -> _Tally:
        """Returns the innermost tally after counting all blocks that came back; the caller holds the lock."""
        tally = self._stack[-1]
        while self._returned:
            tally.back(self._returned.popleft())
        return tally
