"""Iterations that read what lies between the lanes of the iterations before.

Where neighbouring lanes read every second element and iterations follow each other element by element, as a filter does
that keeps every second sample, two iterations read the same vectors: one their even lanes, the other their odd ones.
"""

from __future__ import annotations

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Stage


def iterations_between(main: Stage | None, lane: int | None, last: int) -> int:
    """How many iterations of loop ``last`` read the same vectors of ``main`` along ``lane``; 1 where none do."""
    if main is None or lane is None:
        return 1
    return max((step_between(r, lane, last) for r in main.reads if isinstance(r, ElementAccess)), default=1)


def step_between(r: ElementAccess, lane: int, last: int) -> int:
    """The elements from lane to lane of ``r`` where iterations of ``last`` go on by one; else 1."""
    goes_on = not r.guards and not r.index.nonlinear_in(last) and r.index.coeff(last) == 1
    return int(r.index.coeff(lane)) if goes_on and walk_of(r, lane) is Walk.STRIDED else 1
