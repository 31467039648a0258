"""How an access goes along the lanes of vectors."""

from __future__ import annotations

from enum import Enum

from landbridge.passes.lower.access import ElementAccess


class Walk(Enum):
    """Where an access finds the elements of neighbouring lanes."""

    STAYS = 0
    """It is one element for all lanes."""
    ALONG = 1
    """They are neighbours in memory."""
    TURNED = 2
    """Apart, but those of neighbouring rows are neighbours: blocks of both are transposed in registers."""


def walk_of(a: ElementAccess, lane: int, rows: int | None) -> Walk | None:
    """How ``a`` goes along loop ``lane`` where ``rows`` is the loop of rows; None for what no vector does."""
    if a.index.nonlinear_in(lane) or any(g.index.uses(lane) for g in a.guards):
        return None
    step = a.index.coeff(lane)
    if step in (0, 1):
        return Walk(step)
    if rows is None or a.index.nonlinear_in(rows) or a.guards or a.index.coeff(rows) != 1:
        return None
    return Walk.TURNED
