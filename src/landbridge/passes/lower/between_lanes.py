"""Finds consecutive iterations that read the same vectors, because each reads the elements between the lanes of the
other.

In a filter that keeps every second sample, neighbouring lanes read every second element and the iterations advance by
one element. Two iterations then read the same vectors: one takes the even elements, the other the odd ones.
"""

from __future__ import annotations

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Stage


def iterations_between(main: Stage | None, lane: int | None, last: int) -> int:
    """Returns how many consecutive iterations of loop ``last`` read the same vectors of ``main`` along ``lane``; 1 if
    none do.
    """
    if main is None or lane is None:
        return 1
    return max((step_between(r, lane, last) for r in main.reads if isinstance(r, ElementAccess)), default=1)


def step_between(r: ElementAccess, lane: int, last: int) -> int:
    """Returns the stride of ``r`` from lane to lane, in elements, if each iteration of ``last`` advances it by one
    element; else 1.
    """
    goes_on = not r.guards and not r.index.nonlinear_in(last) and r.index.coeff(last) == 1
    return int(r.index.coeff(lane)) if goes_on and walk_of(r, lane) is Walk.STRIDED else 1
