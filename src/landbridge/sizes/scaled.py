"""Scales extents by f32 factors, as in Resize."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import overload

import numpy as np

from landbridge.sizes.size import Extent


@overload
def scaled(extent: int, factor: float) -> int: ...
@overload
def scaled(extent: Extent, factor: float) -> Extent: ...
def scaled(extent: Extent, factor: float) -> Extent:
    """Returns ``extent`` times the fraction that ``factor`` means (see ``meant``), rounded down."""
    exact = meant(factor)
    return extent * exact.numerator // exact.denominator


@cache
def meant(factor: float) -> Fraction:
    """Returns the simplest fraction that rounds to the f32 ``factor``: 7/10 for 0.699999988.

    Ten times that is 7, and 7 divided by it is 10, as with f32 products and quotients; computed exactly with the f32
    value they would be rounded down to 6 and 9.
    """
    exact, wanted = Fraction(factor), np.float32(factor)
    before, convergent, rest = (0, 1), (1, 0), exact  # of its continued fraction
    while True:
        whole = rest.numerator // rest.denominator
        before, convergent = convergent, (whole * convergent[0] + before[0], whole * convergent[1] + before[1])
        found = Fraction(*convergent)
        if found == exact or (found and np.float32(float(found)) == wanted):
            return found
        rest = 1 / (rest - whole)
