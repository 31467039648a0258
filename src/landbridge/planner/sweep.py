"""Sweep placement: places buffers step by step with a list of holes; other orders look at every pair of buffers."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush

from landbridge.planner.buffers import Buffer
from landbridge.planner.greedy import ORDERS, Fit


def pairs(buffers: Sequence[Buffer]) -> int:
    """Returns the number of pairs of buffers that live at the same step, without a list of them."""
    ends = sorted(b.end for b in buffers if b.size)
    starts = sorted(b.start for b in buffers if b.size)
    return sum(n - bisect(ends, start) for n, start in enumerate(starts))


def sweeps(buffers: Sequence[Buffer]) -> Iterator[list[int]]:
    """Yields plans (byte offsets by index) for buffers without pins: for each ``Fit``, by the first step and in
    reversed time.

    Each is computed when it is asked for.
    """
    back = [replace(b, start=-b.end, end=-b.start) for b in buffers]
    for direction in (buffers, back):
        for fit in Fit:
            yield sweep(direction, fit)


def sweep(buffers: Sequence[Buffer], fit: Fit) -> list[int]:
    """Returns the byte offset of each of ``buffers``, none of which is pinned; 0 for those of size 0.

    Gives the result of `place` for the order "start": buffers by their first step, each in the first or the tightest
    hole that ``fit`` selects.
    """
    offsets = [0] * len(buffers)
    holes = _Holes()
    alive: list[tuple[int, int]] = []  # end, index
    for i in sorted((i for i, b in enumerate(buffers) if b.size), key=lambda i: ORDERS["start"](buffers[i])):
        b = buffers[i]
        while alive and alive[0][0] <= b.start:
            gone = heappop(alive)[1]
            holes.free(offsets[gone], offsets[gone] + buffers[gone].size)
        offsets[i] = holes.take(b.size, b.alignment, fit)
        heappush(alive, (b.end, i))
    return offsets


class _Holes:
    """Free bytes as disjoint ranges that do not touch, by rising offset. The last range has no end (None)."""

    def __init__(self) -> None:
        self._starts = [0]
        self._ends: list[int | None] = [None]

    def take(self, size: int, alignment: int, fit: Fit) -> int:
        """Take ``size`` bytes at a multiple of ``alignment`` and return their offset.

        ``fit`` selects the first hole that is large enough, or the one that leaves the fewest bytes behind them.
        """
        best, best_waste = len(self._starts) - 1, -1
        for n, (start, end) in enumerate(zip(self._starts, self._ends, strict=True)):
            waste = -1 if end is None else end - (-(-start // alignment) * alignment + size)
            if waste >= 0 and (best_waste < 0 or waste < best_waste):
                best, best_waste = n, waste
                if fit is Fit.FIRST:
                    break
        start, end = self._starts[best], self._ends[best]
        offset = -(-start // alignment) * alignment
        left = [(low, high) for low, high in ((start, offset), (offset + size, end)) if low != high]
        self._starts[best : best + 1] = [low for low, _ in left]
        self._ends[best : best + 1] = [high for _, high in left]
        return offset

    def free(self, low: int, high: int) -> None:
        """Release the bytes ``low`` to ``high``, and join them with adjacent holes."""
        first = last = bisect(self._starts, low)
        end: int | None = high
        if first and self._ends[first - 1] == low:
            first -= 1
            low = self._starts[first]
        if self._starts[last] == high:  # the last hole is behind everything in use
            end = self._ends[last]
            last += 1
        self._starts[first:last] = [low]
        self._ends[first:last] = [end]
