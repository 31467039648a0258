"""The smallest peak of tiny instances, by trying every order; shares no code with the planner."""

from __future__ import annotations

from itertools import permutations

from landbridge.planner import Buffer


def smallest_peak(buffers: list[Buffer]) -> int | None:
    """The peak no plan can go below; None when pins collide.

    Some best plan is pushed down: placing its buffers from the lowest up, each at the lowest place that is free,
    gives it back. So all orders, each placed lowest first, reach it.
    """
    pinned = [b for b in buffers if b.offset is not None]
    rest = [b for b in buffers if b.offset is None]
    peaks = []
    for order in permutations(rest):
        at: list[tuple[Buffer, int]] = []
        for b in [*pinned, *order]:
            offset = b.offset
            if offset is None:
                offset = 0
                while under := [place + other.size for other, place in at if _collide(b, offset, other, place)]:
                    offset = -(-min(under) // b.alignment) * b.alignment
            elif any(_collide(b, offset, other, place) for other, place in at):
                return None
            at.append((b, offset))
        peaks.append(max((place + b.size for b, place in at), default=0))
    return min(peaks)


def _collide(a: Buffer, x: int, b: Buffer, y: int) -> bool:
    if not (a.size and b.size and a.start < b.end and b.start < a.end):
        return False
    return x < y + b.size and y < x + a.size
