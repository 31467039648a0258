"""Local search: improves a placement order by moving buffers that reach the peak, and accepts moves that do no harm."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from landbridge.planner.buffers import Buffer
from landbridge.planner.greedy import Conflicts, Fit, peak, place

#: The share of moves that take a buffer at the peak (the others take one of its conflicts), and of moves that go
#: forward in the order (the others go anywhere).
_AT_PEAK, _FORWARD = 0.5, 0.7


def improve(
    buffers: Sequence[Buffer],
    conflicts: Conflicts,
    order: Sequence[int],
    offsets: Sequence[int],
    fit: Fit,
    goal: int,
    deadline: float,
) -> list[int]:
    """Returns offsets with a peak no higher than that of ``offsets``, which ``order`` and ``fit`` gave.

    Stops at a peak of ``goal`` bytes or at ``deadline`` (``time.perf_counter`` seconds). Seeded: equal input takes the
    same steps, though how many depends on the machine.
    """
    rng = random.Random(0)
    best, best_order, best_peak = list(offsets), list(order), peak(buffers, offsets)
    while best_peak > goal and time.perf_counter() < deadline:
        candidate = _move(rng, buffers, conflicts, best, best_order, best_peak)
        if candidate is None:
            break
        placed = place(buffers, conflicts, candidate, fit, limit=best_peak)
        if placed is not None:  # an equal peak is accepted too: it leaves the plateau
            best, best_order, best_peak = placed, candidate, peak(buffers, placed)
    return best


def _move(
    rng: random.Random,
    buffers: Sequence[Buffer],
    conflicts: Conflicts,
    offsets: Sequence[int],
    order: Sequence[int],
    top: int,
) -> list[int] | None:
    """Returns ``order`` with one buffer moved that ends at ``top`` or conflicts with one; None if all are pinned."""
    at_peak = [i for i in order if offsets[i] + buffers[i].size == top and buffers[i].offset is None]
    if not at_peak:
        return None
    moved = rng.choice(at_peak)
    others = [i for i in conflicts[moved] if buffers[i].offset is None]
    if others and rng.random() > _AT_PEAK:
        moved = rng.choice(others)
    pinned = sum(b.offset is not None for b in buffers)
    source = order.index(moved)
    last = source if rng.random() < _FORWARD else len(order) - 1
    candidate = list(order)
    candidate.insert(rng.randint(pinned, last), candidate.pop(source))
    return candidate
