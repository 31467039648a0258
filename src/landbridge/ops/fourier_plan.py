"""Plans a Fourier transform of many points as short ones (Cooley and Tukey, 1965), or as a convolution (Bluestein,
1970) where its points have large prime factors.
"""

from __future__ import annotations

from functools import cache
from math import inf, prod

from landbridge.ops.butterflies import operations, radices
from landbridge.records import record

#: Points up to which one product with a table of all of them is as quick (measured with AVX-512).
_SHORT = 16
#: Points of the largest table that the first factor is multiplied with: it stays in the L1 cache.
_LONGEST_TABLE = 128
#: Lanes that costs are counted for: f32 in the widest vectors.
_LANES = 16
#: What a store to or a load of a buffer between stages costs, in operations on a vector.
_MEMORY = 1.5
#: What operations of a butterfly cost whose values do not fit the registers.
_SPILLED = 1.5
_FITTING = 8
#: The least that a stage costs for each point, in operations: its loops.
_STAGE = 0.5


@record(frozen=True)
class FourierPlan:
    """``radices`` multiply to the number of points transformed: the first is a product with a table, which may be
    any number; the others are butterflies. ``length``: the points of the circular convolution that the transform is
    computed by, and which ``radices`` then multiply to; 0 where it is computed by itself."""

    radices: tuple[int, ...]
    length: int = 0

    @property
    def is_table(self) -> bool:
        """Returns whether the whole transform is one product with a table."""
        return len(self.radices) == 1 and not self.length


@cache
def fourier_plan(points: int, parts: int) -> FourierPlan:
    """Returns the cheapest way found to transform ``points`` of ``parts`` parts: 1 of real and 2 of complex numbers."""
    if points <= _SHORT:
        return FourierPlan((points,))
    cost, found = _cut(points, parts)
    longer = min((_convolution(length) for length in _lengths(2 * points - 1)), default=(inf, ()))
    if longer[0] < cost * points:
        return FourierPlan(longer[1], prod(longer[1]))
    return FourierPlan(found)


def _convolution(length: int) -> tuple[float, tuple[int, ...]]:
    """Returns the cost of two transforms of ``length`` points and a product between them, and their radices."""
    cost, found = _cut(length, 2)
    return 2 * length * (cost + 2 * _MEMORY), found


def _lengths(least: int) -> list[int]:
    """Returns numbers from ``least`` to its double that only have small factors."""
    power = 1 << (least - 1).bit_length()
    smaller = [power // below * above for below, above in ((4, 3), (8, 5), (8, 7), (16, 9)) if power % below == 0]
    return [n for n in (power, *smaller) if n >= least]


def _cut(points: int, parts: int) -> tuple[float, tuple[int, ...]]:
    """Returns the cost for each point, and the radices, of the cheapest order of factors; infinite where a factor is
    large.
    """
    firsts = (r for r in range(1, min(points, _LONGEST_TABLE) + 1) if points % r == 0)
    found = [(_product_cost(r, parts), r, _rest(points // r, r)) for r in firsts]
    return min(((cost + rest[0], (r, *rest[1])) for cost, r, rest in found), default=(inf, ()))


@cache
def _rest(points: int, done: int) -> tuple[float, tuple[int, ...]]:
    """Returns the cheapest butterflies for ``points`` blocks of ``done`` transformed points each."""
    if points == 1:
        return 0.0, ()
    cuts = [(_butterfly_cost(r, done), r) for r in radices() if points % r == 0]
    found = ((cost + rest[0], (r, *rest[1])) for cost, r in cuts for rest in (_rest(points // r, done * r),))
    return min(found, default=(inf, ()))


def _filled(extent: int) -> float:
    """Returns the share of vector lanes that a loop of ``extent`` fills."""
    return extent / (_LANES * -(-extent // _LANES))


def _product_cost(radix: int, parts: int) -> float:
    """Returns vector operations for each point of a product with a table, in sixteenths: two are done at once."""
    return radix * parts / _filled(2 * radix) + 2 * _MEMORY + _STAGE


def _butterfly_cost(radix: int, done: int) -> float:
    work = operations(radix) + 6 * (radix - 1)
    if radix > _FITTING:
        work = int(work * _SPILLED)
    accesses = 4 * radix + 2 * (radix - 1)
    return (work / 2 + accesses * _MEMORY / 2) / radix / _filled(done) + _STAGE
