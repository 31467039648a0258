"""StatisticsAllocator: how much was allocated, in total and between two points of the program."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

from landbridge.errors import InputError
from landbridge.memory.allocators.adaptor import Adaptor
from landbridge.memory.allocators.base import Allocator, Block, Queue, Size, Use


@dataclass(frozen=True, slots=True)
class Counters:
    """Blocks and bytes: out now, at most out at one time, and allocated altogether."""

    current_count: int = 0
    current_bytes: int = 0
    peak_count: int = 0
    peak_bytes: int = 0
    total_count: int = 0
    total_bytes: int = 0

    def after(self, count: int, nbytes: int) -> Counters:
        """These after ``count`` blocks of ``nbytes`` bytes together went out, or came back when negative."""
        now_count, now_bytes = self.current_count + count, self.current_bytes + nbytes
        return Counters(
            now_count,
            now_bytes,
            max(self.peak_count, now_count),
            max(self.peak_bytes, now_bytes),
            self.total_count + max(count, 0),
            self.total_bytes + max(nbytes, 0),
        )


class StatisticsAllocator(Adaptor):
    """Counts what goes through; ``push_counters`` and ``pop_counters`` measure a part of the program."""

    def __init__(self, upstream: Allocator) -> None:
        super().__init__(upstream)
        self._stack = [Counters()]
        self._lock = Lock()
        # Blocks come back in finalizers too, also while this thread holds the lock: they are counted later.
        self._returned: deque[int] = deque()

    @property
    def counters(self) -> Counters:
        """Since the last ``push_counters``, or from the beginning."""
        with self._lock:
            return self._settled()

    def push_counters(self) -> Counters:
        """Count from zero until ``pop_counters``; returns what was counted until now."""
        with self._lock:
            before = self._settled()
            self._stack.append(Counters())
            return before

    def pop_counters(self) -> Counters:
        """End what ``push_counters`` began and return its counters, which then count for the outer part too."""
        with self._lock:
            if len(self._stack) == 1:
                raise InputError("pop_counters without a push_counters before")
            inner = self._settled()
            self._stack.pop()
            outer = self._stack[-1]
            merged = outer.after(inner.current_count, inner.current_bytes)
            self._stack[-1] = replace(
                merged,
                peak_count=max(outer.peak_count, outer.current_count + inner.peak_count),
                peak_bytes=max(outer.peak_bytes, outer.current_bytes + inner.peak_bytes),
                total_count=outer.total_count + inner.total_count,
                total_bytes=outer.total_bytes + inner.total_bytes,
            )
            return inner

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """A block of ``upstream``, counted."""
        block = self.upstream.allocate(size, alignment, queue)
        with self._lock:
            self._stack[-1] = self._settled().after(1, block.nbytes)
        return block

    def deallocate(self, block: Block, uses: Sequence[Use] = ()) -> None:
        """Give ``block`` back to ``upstream``, counted."""
        self.upstream.deallocate(block, uses)
        self._returned.append(block.nbytes)

    def _settled(self) -> Counters:
        """The innermost counters with all blocks that came back; the lock must be held."""
        while self._returned:
            nbytes = self._returned.popleft()
            self._stack[-1] = self._stack[-1].after(-1, -nbytes)
        return self._stack[-1]
