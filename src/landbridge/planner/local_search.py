"""Improve a greedy order: place the buffers that reach the peak earlier, and keep what does no harm."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from landbridge.planner.buffers import Buffer
from landbridge.planner.greedy import Conflicts, Fit, peak, place


def improve(
    buffers: Sequence[Buffer],
    conflicts: Conflicts,
    order: Sequence[int],
    offsets: Sequence[int],
    fit: Fit,
    goal: int,
    deadline: float,
) -> list[int]:
    """Offsets with a peak no higher than that of ``offsets``, which ``order`` and ``fit`` gave.

    Stops at a peak of ``goal`` bytes or at ``deadline`` (``time.perf_counter`` seconds). Seeded: equal input
    takes the same steps, though how many depends on the machine.
    """
    rng = random.Random(0)
    best, best_order, best_peak = list(offsets), list(order), peak(buffers, offsets)
    pinned = sum(b.offset is not None for b in buffers)
    while best_peak > goal and time.perf_counter() < deadline:
        candidate = _promote(rng, buffers, best, best_order, best_peak, pinned)
        if candidate is None:
            break
        placed = place(buffers, conflicts, candidate, fit, limit=best_peak)
        if placed is not None:  # an equal peak is a step too: it leaves the plateau
            best, best_order, best_peak = placed, candidate, peak(buffers, placed)
    return best


def _promote(
    rng: random.Random,
    buffers: Sequence[Buffer],
    offsets: Sequence[int],
    order: Sequence[int],
    top: int,
    pinned: int,
) -> list[int] | None:
    """``order`` with one buffer that ends at ``top`` moved forward; None when none can move."""
    movable = [p for p in range(pinned + 1, len(order)) if offsets[order[p]] + buffers[order[p]].size == top]
    if not movable:
        return None
    source = rng.choice(movable)
    target = rng.randrange(pinned, source)
    moved = list(order)
    moved.insert(target, moved.pop(source))
    return moved
