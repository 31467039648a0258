"""The guards of padded reads: where each of them holds, and what is known of it in the code being emitted.

A guard is the test ``0 <= index < extent`` of one axis of a padded read. Its index is linear in the loops, so the
iterations of a loop for which it holds are contiguous. One rule follows for all of them: where a guard changes its
truth, the loop is peeled [index-set splitting], so that the guard is known in each piece and no piece tests it.
``peeling.py`` chooses the pieces. A guard whose truth no piece decides is tested at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from landbridge.passes.lower.access import ElementAccess, Guard, Linear
from landbridge.passes.lower.combiners import skips_padding
from landbridge.passes.lower.nest import Bound, LoopDim, Nest
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, at_least

#: The first and the last iteration of a loop.
Range: TypeAlias = tuple[Extent, Extent]


@record(frozen=True)
class RowGuard:
    """A guard whose index depends on the row and on one loop of the reduction, ``dim``."""

    guard: Guard
    dim: int


@record(frozen=True)
class RowEdges:
    """The number of first rows that read before their buffers, and the number of last rows that read beyond them."""

    first: int
    last: int


def full_ranges(dims: Sequence[LoopDim]) -> list[Range]:
    """Returns the ranges of all iterations of ``dims``."""
    return [(0, d.extent - 1) for d in dims]


def index_range(x: Linear, ranges: Sequence[Range]) -> Range | None:
    """Returns the smallest and the largest value of an index over the ``ranges`` of the loops, by interval arithmetic.

    Returns None if the index has nonlinear terms, or a factor whose sign is unknown.
    """
    if x.rest:
        return None
    low: Extent = x.const
    high: Extent = x.const
    for d, c in x.coeffs.items():
        first, last = ranges[d]
        positive = True if first == last else at_least(c, 0)
        if positive is None:
            return None
        low += c * (first if positive else last)
        high += c * (last if positive else first)
    return low, high


def truth(guard: Guard, ranges: Sequence[Range]) -> bool | None:
    """Returns True if ``guard`` holds for all iterations in ``ranges``, and False if it fails for all of them.

    Returns None if it holds for some of them, or if that depends on Sizes.
    """
    span = index_range(guard.index, ranges)
    if span is None:
        return None
    low, high = span
    if at_least(low, 0) and at_least(guard.extent - 1, high):
        return True
    return False if at_least(high, 0) is False or at_least(guard.extent - 1, low) is False else None


def row_guards(nest: Nest, m_dim: int | None, lane: int | None) -> list[RowGuard]:
    """Returns the guards that depend on loop ``m_dim`` and on one reduction loop.

    Returns an empty list if a guard of a row has another form, or if padding may change the result of the reduction.
    """
    main = nest.reduction
    if m_dim is None or main is None or m_dim == lane or not skips_padding(main):
        return []
    tiled = {b.inner for b in nest.bounds}
    found = []
    for r in main.reads:
        for g in r.guards if isinstance(r, ElementAccess) else ():
            if g.index.coeff(m_dim):
                others = [d for d in g.index.coeffs if d != m_dim]
                if len(others) != 1 or g.index.rest or others[0] in tiled or not nest.dims[others[0]].reduction:
                    return []
                found.append(RowGuard(g, others[0]))
    return found


def row_edges(nest: Nest, guards: Sequence[RowGuard], m_dim: int | None) -> RowEdges | None:
    """Returns the edges of an open number of rows, from its ``row_guards``; None if there are none or they depend on
    the number.
    """
    if m_dim is None or not guards:
        return None
    first, last, extent = 0, 0, nest.dims[m_dim].extent
    for g, d in ((each.guard, each.dim) for each in guards):
        c, iterations = g.index.coeff(m_dim), nest.dims[d].extent - 1
        if c <= 0 or isinstance(iterations, Size) or isinstance(g.index.const, Size):
            return None
        left = g.extent - c * extent
        if isinstance(left, Size):
            return None
        ends = sorted((0, g.index.coeff(d) * iterations))
        first = max(first, -((g.index.const + ends[0]) // c))
        last = max(last, -((left + c - 1 - g.index.const - ends[1]) // c))
    return RowEdges(first, last)


def bound_guard(bound: Bound) -> Guard:
    """Returns the guard of a padded tile: its elements exist where ``outer * tile + inner < extent``."""
    return Guard(Linear(0, {bound.outer: bound.tile, bound.inner: 1}), bound.extent)


class KnownRanges:
    """The ranges of loop indices in the code that is being emitted, and the guards that are known to hold there.

    Facts are scoped lexically: a ``with`` block adds them for the code that is emitted in it.
    """

    def __init__(self, nest: Nest) -> None:
        self._ranges = full_ranges(nest.dims)
        self._guards = [bound_guard(b) for b in nest.bounds]
        for g in (g for s in nest.stages for r in s.reads if isinstance(r, ElementAccess) for g in r.guards):
            if g not in self._guards:
                self._guards.append(g)
        self._holding = [g for g in self._guards if truth(g, self._ranges)]

    def holds(self, guard: Guard) -> bool:
        """Returns whether ``guard`` is known to hold, so that it need not be tested."""
        return guard in self._holding

    @contextmanager
    def within(self, dim: int, low: Extent, high: Extent) -> Iterator[None]:
        """Narrow loop ``dim`` to iterations ``low`` to ``high``, both included."""
        before = self._ranges[dim]
        self._ranges[dim] = low, high
        proved = [g for g in self._guards if g.index.uses(dim) and not self.holds(g) and truth(g, self._ranges)]
        with self.tested(proved):
            yield
        self._ranges[dim] = before

    @contextmanager
    def tested(self, guards: Sequence[Guard]) -> Iterator[None]:
        """Let ``guards`` hold, because of the bounds of a loop or a test at run time around the code."""
        before = self._holding
        self._holding = [*before, *guards]
        yield
        self._holding = before
