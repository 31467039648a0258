"""Greedy placement: buffers in a given order, each into the best hole left by those placed before it."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from landbridge.errors import PlanError
from landbridge.planner.buffers import Buffer

Conflicts = Sequence[Sequence[int]]


class Fit(Enum):
    """Which hole a buffer takes: the lowest one that fits, or the smallest one that fits."""

    FIRST = "first"
    BEST = "best"


#: The orders to try; keys sort ascending, ties go to the longer-lived, then to the earlier buffer.
ORDERS: dict[str, Callable[[Buffer], tuple[int, ...]]] = {
    "size": lambda b: (-b.size, b.start - b.end, b.start),
    "area": lambda b: (-b.size * (b.end - b.start), -b.size, b.start),
    "lifetime": lambda b: (b.start - b.end, -b.size, b.start),
    "start": lambda b: (b.start, -b.size, b.start - b.end),
}


def orders(buffers: Sequence[Buffer]) -> Iterator[list[int]]:
    """Yields every greedy order of the buffers' indices, pinned buffers first."""
    for key in ORDERS.values():
        yield sorted(range(len(buffers)), key=lambda i: (buffers[i].offset is None, key(buffers[i])))


def place(
    buffers: Sequence[Buffer], conflicts: Conflicts, order: Sequence[int], fit: Fit, limit: int | None = None
) -> list[int] | None:
    """Returns byte offsets by index when placed in ``order``; None as soon as one would end above ``limit`` bytes.

    ``order`` must have the pinned buffers first; raises PlanError when two of them collide.
    """
    offsets = [-1] * len(buffers)
    # Byte ranges taken by a buffer's conflicts so far, sorted by offset; they may overlap each other.
    taken: list[list[tuple[int, int]]] = [[] for _ in buffers]
    for i in order:
        buffer = buffers[i]
        if buffer.offset is not None:
            offset = buffer.offset
            _check_pin(buffers, conflicts[i], offsets, buffer, offset)
        else:
            offset = _hole(taken[i], buffer.size, buffer.alignment, fit)
        end = offset + buffer.size
        if limit is not None and end > limit:
            return None
        offsets[i] = offset
        for j in conflicts[i]:
            if offsets[j] < 0:
                insort(taken[j], (offset, end))
    return offsets


def peak(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """Returns the bytes that a placement needs."""
    return max((offset + b.size for b, offset in zip(buffers, offsets, strict=True)), default=0)


def _hole(taken: list[tuple[int, int]], size: int, alignment: int, fit: Fit) -> int:
    top = 0  # aligned end of everything seen so far
    best, best_waste = -1, 0
    for start, end in taken:
        waste = start - top - size
        if waste >= 0:
            if fit is Fit.FIRST:
                return top
            if best < 0 or waste < best_waste:
                best, best_waste = top, waste
        if end > top:
            top = (end + alignment - 1) & -alignment
    return top if best < 0 else best


def _check_pin(
    buffers: Sequence[Buffer], neighbours: Sequence[int], offsets: Sequence[int], buffer: Buffer, start: int
) -> None:
    for j in neighbours:
        other, offset = buffers[j], offsets[j]
        if -1 < offset < start + buffer.size and start < offset + other.size:
            raise PlanError(
                f"buffers {other.id!r} and {buffer.id!r} live at the same time and are pinned to bytes that "
                f"overlap: {other.size} at {offset}, {buffer.size} at {start}; pin one elsewhere"
            )
