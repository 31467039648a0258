"""Plan the offsets of buffers in one arena, in stages that stop as soon as the lower bound is reached."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from landbridge.errors import PlanError
from landbridge.planner.buffers import Buffer, Plan
from landbridge.planner.checker import check
from landbridge.planner.conflicts import conflicts
from landbridge.planner.greedy import Conflicts, Fit, orders, peak, place
from landbridge.planner.local_search import improve
from landbridge.planner.lower_bound import lower_bound
from landbridge.planner.lowest_first import lowest_first


def plan(buffers: Sequence[Buffer], capacity: int | None = None, budget_seconds: float = 0.5) -> Plan:
    """Offsets for ``buffers``, all of one (device, scope), with a peak as low as the time allows.

    Every greedy order is tried; what remains of ``budget_seconds`` goes into improving the best of them. The
    plan returned has passed the checker. Raises PlanError when ids repeat, pins collide, or the peak reached
    is above ``capacity`` bytes: the message says whether any plan could fit.
    """
    began = time.perf_counter()
    bound = lower_bound(buffers)
    if capacity is not None and bound > capacity:
        raise PlanError(
            f"no plan fits {capacity} bytes: {bound} bytes are needed at once, most of them by "
            f"{_largest_at_worst_step(buffers)}; split the work or use a larger scope"
        )
    offsets = _solve(buffers, bound, began + budget_seconds)
    reached = peak(buffers, offsets)
    result = Plan(
        offsets={b.id: offset for b, offset in zip(buffers, offsets, strict=True)},
        peak=reached,
        lower_bound=bound,
        proved_optimal=reached == bound,
        seconds=time.perf_counter() - began,
    )
    check(buffers, result)
    if capacity is not None and reached > capacity:
        raise PlanError(
            f"no plan within {capacity} bytes was found in {budget_seconds} s: the best needs {reached}, and "
            f"{bound} might do; raise budget_seconds, or use a larger scope"
        )
    return result


def _solve(buffers: Sequence[Buffer], goal: int, deadline: float) -> list[int]:
    together = conflicts(buffers)
    best: tuple[int, list[int], list[int], Fit] | None = None
    for order, fit in _starts(buffers, together):
        placed = place(buffers, together, order, fit, limit=None if best is None else best[0] - 1)
        if placed is None:
            continue
        best = (peak(buffers, placed), order, placed, fit)
        if best[0] <= goal:
            return placed
    if best is None:
        return []
    _, order, offsets, fit = best
    return improve(buffers, together, order, offsets, fit, goal, deadline)


def _starts(buffers: Sequence[Buffer], together: Conflicts) -> Iterator[tuple[list[int], Fit]]:
    """Greedy ways to place ``buffers``, the cheap ones first; made when asked for."""
    for order in orders(buffers):
        yield order, Fit.FIRST
        yield order, Fit.BEST
    for order in orders(buffers):
        yield lowest_first(buffers, together, order), Fit.FIRST


def _largest_at_worst_step(buffers: Sequence[Buffer]) -> str:
    steps = sorted({b.start for b in buffers})
    worst = max(steps, key=lambda t: sum(b.size for b in buffers if b.start <= t < b.end))
    live = sorted((b for b in buffers if b.start <= worst < b.end), key=lambda b: -b.size)
    return ", ".join(f"{b.id!r} ({b.size})" for b in live[:3])
