"""Plans the offsets of buffers in one arena, in stages that stop as soon as the lower bound is reached."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from landbridge.errors import PlanError
from landbridge.planner.bodies import Body, variants
from landbridge.planner.buffers import Buffer, Plan
from landbridge.planner.checker import check
from landbridge.planner.conflicts import conflicts
from landbridge.planner.greedy import Conflicts, Fit, orders, peak, place
from landbridge.planner.local_search import improve
from landbridge.planner.lower_bound import lower_bound
from landbridge.planner.lowest_first import lowest_first
from landbridge.planner.rigid import place_rigid
from landbridge.planner.sweep import pairs, sweeps

#: Seconds after which the remaining greedy orders are skipped; only thousands of buffers take that long.
_PORTFOLIO = 1.0
#: Seconds for local search, at most this share of all: it is quick if the greedy plan is nearly right, else useless.
_LOCAL_SEARCH, _LOCAL_SHARE = 0.1, 0.2
#: Conflicting pairs per buffer from which plans without a list of pairs are tried first, and the number of pairs above
#: which only those are tried: each other order would take seconds, and twice the buffers four times as many.
_DENSE, _MOST_PAIRS = 8, 2_000_000


def plan(buffers: Sequence[Buffer], capacity: int | None = None, budget_seconds: float = 0.5, *, goal: int = 0) -> Plan:
    """Returns offsets for ``buffers``, all of one (device, scope), with a peak as low as the time allows.

    Every greedy order is tried; while the best of them misses the lower bound, ``budget_seconds`` go into local search
    and then into an exact search, which starts at the bound and may also raise it. From 2 seconds on, the exact search
    is compiled and runs on two threads (the first such call of an installation makes the machine code, some seconds
    more than the budget, if numba is installed). Equal input gives equal offsets when the search ends by itself; if
    time ends it, the offsets are the best by then. A peak of ``goal`` bytes is good enough: nothing lower is searched.

    The plan returned has passed the checker. Raises PlanError when ids repeat, pins collide, aliases contradict each
    other, or the peak reached is above ``capacity`` bytes: the message says whether any plan could fit.
    """
    began = time.perf_counter()
    bound = lower_bound(buffers)
    if capacity is not None and bound > capacity:
        raise PlanError(
            f"no plan fits {capacity} bytes: {bound} bytes are needed at once, most of them by "
            f"{_largest_at_worst_step(buffers)}; split the work or use a larger scope"
        )
    solve = _solve_aliases if any(b.alias is not None for b in buffers) else _solve
    offsets, bound = solve(buffers, bound, capacity, budget_seconds, goal)
    reached = peak(buffers, offsets)
    result = Plan(
        offsets={b.id: offset for b, offset in zip(buffers, offsets, strict=True)},
        peak=reached,
        lower_bound=bound,
        proved_optimal=reached == bound,
        seconds=time.perf_counter() - began,
    )
    check(buffers, result)
    if capacity is not None and bound > capacity:
        raise PlanError(
            f"no plan fits {capacity} bytes: the search has shown that {bound} are needed (the best plan found "
            f"takes {reached}); split the work or use a larger scope"
        )
    if capacity is not None and reached > capacity:
        raise PlanError(
            f"no plan within {capacity} bytes was found in {budget_seconds} s: the best needs {reached}, and "
            f"{bound} might do; raise budget_seconds (--budget), or use a larger scope"
        )
    return result


def _solve(
    buffers: Sequence[Buffer], bound: int, capacity: int | None, budget_seconds: float, goal: int
) -> tuple[list[int], int]:
    """Returns offsets by index and the lower bound, which a search may have raised."""
    now = time.perf_counter()
    count = pairs(buffers)
    if count > _DENSE * len(buffers) and all(b.offset is None for b in buffers):
        lowest: list[int] = []
        for offsets in sweeps(buffers):
            if not lowest or peak(buffers, offsets) < peak(buffers, lowest):
                lowest = offsets
            if peak(buffers, lowest) <= max(bound, goal):
                return lowest, bound
        if count > _MOST_PAIRS:
            return lowest, bound
    together = conflicts(buffers)
    best: tuple[int, list[int], list[int], Fit] | None = None
    for order, fit in _starts(buffers, together):
        if best is not None and time.perf_counter() > now + max(_PORTFOLIO, budget_seconds):
            break
        placed = place(buffers, together, order, fit, limit=None if best is None else best[0] - 1)
        if placed is None:
            continue
        best = (peak(buffers, placed), order, placed, fit)
        if best[0] <= max(bound, goal):
            return placed, bound
    if best is None:
        return [], bound
    # imported here: it brings threads and digests, which take as long to import as the plan of a small program
    from landbridge.planner.exact import suits, tighten

    _, order, offsets, fit = best
    seconds = min(_LOCAL_SEARCH, budget_seconds * _LOCAL_SHARE) if suits(together) else budget_seconds
    offsets = improve(buffers, together, order, offsets, fit, max(bound, goal), now + seconds)
    return tighten(buffers, together, offsets, bound, capacity, now + budget_seconds, goal=goal)


def _solve_aliases(
    buffers: Sequence[Buffer], bound: int, capacity: int | None, budget_seconds: float, goal: int
) -> tuple[list[int], int]:
    """Returns what `_solve` does, with an equal share of the time for each choice of aliases; ``bound`` holds for
    all."""
    specializations = variants(buffers)
    best: list[int] = []
    for bodies in specializations:
        hulls = [body.hull for body in bodies]
        for offsets in _alias_plans(buffers, bodies, hulls, capacity, budget_seconds / len(specializations), goal):
            if not best or peak(buffers, offsets) < peak(buffers, best):
                best = offsets
            if peak(buffers, best) <= max(bound, goal):
                return best, bound
    return best, bound


def _alias_plans(
    buffers: Sequence[Buffer],
    bodies: Sequence[Body],
    hulls: Sequence[Buffer],
    capacity: int | None,
    budget_seconds: float,
    goal: int,
) -> Iterator[list[int]]:
    """Yields offsets with the bodies as blocks, then with their exact shapes; computed on demand."""
    placed, _ = _solve(hulls, lower_bound(hulls), capacity, budget_seconds, goal)
    offsets = [0] * len(buffers)
    for body, at in zip(bodies, placed, strict=True):
        for i, byte in body.members.items():
            offsets[i] = at + byte
    yield offsets
    if pairs(buffers) > _MOST_PAIRS:
        return
    together = conflicts(buffers)
    for order in orders(hulls):
        yield place_rigid(buffers, bodies, together, order)


def _starts(buffers: Sequence[Buffer], together: Conflicts) -> Iterator[tuple[list[int], Fit]]:
    """Yields greedy orders and fits for ``buffers``, the cheap ones first; computed on demand."""
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
