"""Classifies how an access moves along the lanes of vectors."""

from __future__ import annotations

from enum import Enum

from landbridge.passes.lower.access import ElementAccess, Guard
from landbridge.passes.lower.cost import ELEMENTWISE


class Walk(Enum):
    """The relation between the elements that an access reads or writes in neighbouring lanes."""

    STAYS = 0
    """One element for all lanes."""
    ALONG = 1
    """Contiguous elements."""
    STRIDED = 2
    """A small constant stride."""
    TRANSPOSED = 3
    """A large stride, but elements of neighbouring rows are contiguous: blocks of rows and lanes are transposed."""


def walk_of(a: ElementAccess, lane: int, m_dim: int | None = None) -> Walk | None:
    """Returns how ``a`` moves along loop ``lane``; None if vectors cannot follow it.

    ``m_dim`` is the loop of the rows if blocks are transposed. Padding may begin or end inside a vector, if the index
    that its guard tests moves along the lane as the access does.
    """
    step = a.index.coeff(lane)
    if a.index.nonlinear_in(lane) or not all(_follows(g, lane, step) for g in lane_guards(a, lane)):
        return None
    if step in (0, 1):
        return Walk(step)
    if m_dim is not None:
        transposed = not a.index.nonlinear_in(m_dim) and not a.guards and a.index.coeff(m_dim) == 1
        return Walk.TRANSPOSED if transposed else None
    return Walk.STRIDED if isinstance(step, int) and 1 < step <= ELEMENTWISE.stride else None


def lane_guards(a: ElementAccess, lane: int) -> list[Guard]:
    """Returns the guards of ``a`` whose result may differ between neighbouring lanes."""
    return [g for g in a.guards if g.index.uses(lane)]


def _follows(g: Guard, lane: int, step: int) -> bool:
    return not g.index.nonlinear_in(lane) and g.index.coeff(lane) == step and step != 0
