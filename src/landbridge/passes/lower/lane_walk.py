"""How an access goes along the lanes of vectors."""

from __future__ import annotations

from enum import Enum

from landbridge.passes.lower.access import ElementAccess, Guard

#: Elements between neighbouring lanes, at most, where vectors that hold all elements are loaded and lanes picked.
MOST_STEP = 4


class Walk(Enum):
    """Where an access finds the elements of neighbouring lanes."""

    STAYS = 0
    """It is one element for all lanes."""
    ALONG = 1
    """They are neighbours in memory."""
    STRIDED = 2
    """A few elements apart."""
    TRANSPOSED = 3
    """Apart, but those of neighbouring rows are neighbours: blocks of both are transposed in registers."""


def walk_of(a: ElementAccess, lane: int, rows: int | None = None) -> Walk | None:
    """How ``a`` goes along loop ``lane``; None for what no vector does. ``rows`` is the loop of the rows of blocks that
    are transposed, where any are.

    Padding may begin or end in the midst of a vector: its test goes along the lane as the access does.
    """
    step = a.index.coeff(lane)
    if a.index.nonlinear_in(lane) or not all(_follows(g, lane, step) for g in lane_guards(a, lane)):
        return None
    if step in (0, 1):
        return Walk(step)
    if rows is not None:
        transposed = not a.index.nonlinear_in(rows) and not a.guards and a.index.coeff(rows) == 1
        return Walk.TRANSPOSED if transposed else None
    return Walk.STRIDED if isinstance(step, int) and 1 < step <= MOST_STEP else None


def lane_guards(a: ElementAccess, lane: int) -> list[Guard]:
    """The tests for padding that neighbouring lanes may answer differently."""
    return [g for g in a.guards if g.index.uses(lane)]


def _follows(g: Guard, lane: int, step: int) -> bool:
    return not g.index.nonlinear_in(lane) and g.index.coeff(lane) == step and step != 0
