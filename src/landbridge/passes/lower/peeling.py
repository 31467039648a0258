"""Peels the loops of a tile's rows and reduction where padding begins and ends [loop peeling, index-set splitting].

The loop over row tiles is cut into first tiles, of which some row reads padding, tiles in the middle, all of whose
guards hold, and last tiles. The first row of a peeled tile is known, and so is the truth of each guard for each row and
iteration: a row leaves out the iterations that read padding. If the code of a tile is long, the reduction loop alone is
peeled, with bounds that depend on the row, so that one piece of code serves all tiles (``PeeledIterations``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from xdsl.ir import Block

from landbridge.passes.lower.access import ElementAccess, Guard
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.combiners import skips_padding
from landbridge.passes.lower.cost import EDGES
from landbridge.passes.lower.guards import RowEdges, full_ranges, row_edges, row_guards, truth
from landbridge.passes.lower.lane_walk import lane_guards
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, expected_size


@record(frozen=True)
class LoopPiece:
    """Iterations ``low`` to ``high`` of reduction loop ``dim``, which only ``rows`` of a tile execute."""

    dim: int
    low: int
    high: int
    rows: frozenset[int]


@record(frozen=True)
class PeeledIterations:
    """A reduction loop ``dim`` that is peeled at both ends with bounds that depend on the row of the tile.

    ``first`` are the pieces at its start in the tile at row 0, ``last`` those at its end in the tile at ``last_row``.
    All rows of a tile execute what lies between. Each row reads ``step`` iterations further on than the row before it.
    ``before`` and ``after``: how many iterations the first row of the first tile and the last row of the last one leave
    out, if the loop had as many. They exceed the iterations of the loop where padding is wider than its window.
    """

    dim: int
    first: tuple[LoopPiece, ...]
    last: tuple[LoopPiece, ...]
    step: int
    last_row: Extent
    before: int
    after: int

    def bounds(self, code: Code, extent: int, row: Index) -> tuple[Index, Index]:
        """Returns the bounds of the iterations, out of ``extent``, that all rows of the tile at ``row`` execute; the
        first may exceed the second where there are none.

        Iterations below the first bound belong to ``first``, those from the second bound on to ``last``.
        """
        low: Index = 0
        high: Index = extent
        if self.first:
            low = code.maximum(code.add(code.mul(row, -self.step), self.before), 0)
        if self.last:
            left_out = code.add(code.mul(row, self.step), self.after - self.step * self.last_row)
            high = code.add(code.mul(code.maximum(left_out, 0), -1), extent)
        return low, high


class Peeling:
    """Where the loops of a scheduled nest are peeled because of padding.

    ``skips``: leaving out padded iterations of the reduction changes no result, so that loops are clipped to the
    buffer. ``row_guards``: the guards that depend on the row. ``lane_guards``: those whose result may differ between
    the lanes of a vector. ``inner_rows``: the range of rows all of whose guards hold, if the other tiles are peeled;
    else None. ``runs``: the runs of row tiles, cut where tiles are peeled.
    """

    def __init__(self, nest: Nest, sched: Schedule) -> None:
        self._nest, self._sched = nest, sched
        self.skips = nest.reduction is not None and skips_padding(nest.reduction)
        self.row_guards = row_guards(nest, sched.m_dim, sched.lane)
        self._ranges = full_ranges(nest.dims)
        self.inner_rows = self._inner_rows()
        peels = [run for run in sched.m_runs if self.inner_rows is not None or self.open_edges(run)]
        self._peeled = {run: found for run in peels if (found := self._peeled_iterations(run)) is not None}
        self.runs = [piece for run in sched.m_runs for piece in self._split(run)]
        reads = [r for s in nest.stages for r in s.reads if isinstance(r, ElementAccess)]
        self.lane_guards = list[Guard]()
        for g in (g for r in reads if sched.lane is not None for g in lane_guards(r, sched.lane)):
            if g not in self.lane_guards:
                self.lane_guards.append(g)

    def peeled(self, run: Run) -> PeeledIterations | None:
        """Returns the reduction loop that is peeled for all tiles of ``run``; None if tiles are peeled instead, or
        nothing is.
        """
        return self._peeled.get(run)

    def is_peeled(self, run: Run) -> bool:
        """Returns whether tiles of ``run`` leave out padded iterations, each in its way."""
        if self.inner_rows is None:
            return self.open_edges(run) is not None
        return run in self._peeled or not all(_is_inside(run, k, self.inner_rows) for k in range(run.count))

    def _split(self, run: Run) -> list[Run]:
        """Returns ``run``, cut into tiles that are peeled, and runs of tiles all of whose guards hold."""
        span = self.inner_rows
        if span is None or run in self._peeled:
            return [run]
        result: list[Run] = []
        for inside, tiles in groupby(range(run.count), key=lambda k: _is_inside(run, k, span)):
            numbers = list(tiles)
            pieces = [(numbers[0], len(numbers))] if inside else [(k, 1) for k in numbers]
            result += [Run(run.start + k * run.tile, n, run.tile, run.mask) for k, n in pieces]
        return result

    def _inner_rows(self) -> tuple[int, int] | None:
        """Returns the range of rows whose every read is inside; None if no row is padded, or if there are too many edge
        tiles.
        """
        m_dim = self._sched.m_dim
        if not self.row_guards or m_dim is None:
            return None
        extent = self._nest.dims[m_dim].extent
        if isinstance(extent, Size):
            return None

        def inside(m: int) -> bool:
            return all(truth(each.guard, self._at({m_dim: m})) for each in self.row_guards)

        good = [m for m in range(extent) if inside(m)]
        span = (good[0], good[-1] + 1) if good else (extent, extent)
        edges = sum(not _is_inside(run, k, span) for run in self._sched.m_runs for k in range(run.count))
        return span if edges <= EDGES.tiles else None

    def _at(self, point: dict[int, Extent]) -> list[tuple[Extent, Extent]]:
        """Returns the ranges of all loops where those in ``point`` have these indices."""
        return [(point[d], point[d]) if d in point else full for d, full in enumerate(self._ranges)]

    def open_edges(self, run: Run) -> RowEdges | None:
        """Returns the edges of an open number of rows, if ``run`` has a first and a last tile; else None.

        Also returns None if the edges depend on the number of rows, or if one tile may contain both.
        """
        if not run.leads:
            return None
        edges = row_edges(self._nest, self.row_guards, self._sched.m_dim)
        return edges if edges is not None and edges.first + edges.last <= run.tile else None

    def row_inside(self, row: Extent, d: int, i: int) -> bool:
        """Returns whether iteration ``i`` of reduction loop ``d`` reads no padding at ``row``.

        If the number of rows is open, ``row`` must be in the first or the last tile, and the tile must not contain
        padding of the other end: a guard that depends on the number is then known to hold.
        """
        m_dim = self._sched.m_dim
        assert m_dim is not None
        at = self._at({m_dim: row, d: i})
        return all(each.dim != d or truth(each.guard, at) is not False for each in self.row_guards)

    def guards_of(self, d: int) -> list[Guard]:
        """Returns the guards that depend on the row and on reduction loop ``d``."""
        return [each.guard for each in self.row_guards if each.dim == d]

    def tile_pieces(self, row: Extent, tile: int) -> tuple[LoopPiece, ...]:
        """Returns the pieces of all reduction loops of which the ``tile`` rows from ``row`` on may leave out
        iterations.
        """
        return tuple(p for d in {each.dim: None for each in self.row_guards} for p in self.pieces(row, tile, d))

    def pieces(self, row: Extent, tile: int, d: int) -> list[LoopPiece]:
        """Returns the pieces of reduction loop ``d`` for the ``tile`` rows from ``row`` on: in each of them the same
        rows read no padding.

        ``row`` must be as for ``row_inside``.
        """
        iterations = range(self._nest.dims[d].extent)
        rows = [frozenset(m for m in range(tile) if self.row_inside(row + m, d, i)) for i in iterations]
        return _pieces(d, rows, 0, len(rows))

    def _peeled_iterations(self, run: Run) -> PeeledIterations | None:
        """Returns the reduction loop that is peeled for all tiles of ``run``, if one piece of code serves them.

        Returns None if no iterations are left out, or if the run has one tile only.
        """
        guards, sched, m_dim = self.row_guards, self._sched, self._sched.m_dim
        if m_dim is None or len({each.dim for each in guards}) != 1 or sched.horizontal:
            return None
        (first, *_), d = guards, guards[0].dim
        step, iterations = first.guard.index.coeff(m_dim), self._nest.dims[d].extent
        within = sched.inner[sched.inner.index(d) + 1 :]
        extents = [self._nest.dims[x].extent for x in within]
        if isinstance(iterations, Size) or math.prod(expected_size(e) for e in extents) < EDGES.iterations_within:
            return None
        indices = [each.guard.index for each in guards]
        unified = all((x.coeff(m_dim), x.coeff(d)) == (step, 1) for x in indices)
        if not isinstance(step, int) or step < 1 or not unified or sched.iterations > 1:
            return None
        if any(isinstance(x.const, Size) for x in indices):
            return None
        m_extent = self._nest.dims[m_dim].extent
        if isinstance(m_extent, Size):
            found = None if run.last is None else self._ends(d, step, run.tile, 0, run.last)
            # the second and the last but one tile may begin one row from the ends
            return found if found is not None and max(found.before, found.after) <= step else None
        if run.tile == m_extent:
            return None
        ends_with_rows = run.start + run.count * run.tile == m_extent
        found = self._ends(
            d, step, run.tile, 0 if run.start == 0 else None, m_extent - run.tile if ends_with_rows else None
        )
        tiles = [self.pieces(run.start + k * run.tile, run.tile, d) for k in range(run.count)]
        return found if found is not None and _describes(found, run, tiles, iterations) else None

    def _ends(
        self, d: int, step: int, tile: int, first_row: Extent | None, last_row: Extent | None
    ) -> PeeledIterations | None:
        """Returns loop ``d``, peeled for the tiles at ``first_row`` and ``last_row``, None for tiles elsewhere.

        Returns None if every row executes all iterations, or if iterations in the middle of the loop are left out.
        """
        iterations, every = self._nest.dims[d].extent, frozenset(range(tile))
        low, high = (
            [every] * iterations if row is None else _rows_of(self.pieces(row, tile, d))
            for row in (first_row, last_row)
        )
        begin = next((i for i, rows in enumerate(low) if rows == every), iterations)
        end = next((i for i in reversed(range(iterations)) if high[i] == every), -1) + 1
        if begin > end or any(rows != every for rows in (*low[begin:], *high[:end])) or (begin, end) == (0, iterations):
            return None
        guards = [each.guard for each in self.row_guards]
        before = 0 if first_row is None else max(-g.index.const for g in guards)
        after, row = 0, 0 if last_row is None else last_row
        for g in guards if last_row is not None else ():
            beyond = g.index.const + (row + tile - 1) * step + iterations - g.extent
            if isinstance(beyond, Size):
                return None
            after = max(after, beyond)
        first, last = tuple(_pieces(d, low, 0, begin)), tuple(_pieces(d, high, end, iterations))
        return PeeledIterations(d, first, last, step, row, before, after)


def _is_inside(run: Run, k: int, rows: tuple[int, int]) -> bool:
    """Returns whether all rows of tile ``k`` of ``run`` are in the range ``rows``."""
    return run.start + k * run.tile >= rows[0] and run.start + (k + 1) * run.tile <= rows[1]


def _describes(peeled: PeeledIterations, run: Run, tiles: Sequence[Sequence[LoopPiece]], iterations: int) -> bool:
    """Returns whether the code of ``peeled`` executes in each tile of ``run`` what its pieces of the loop say."""
    first = run.start
    assert isinstance(first, int)
    return all(
        _executed(peeled, first + k * run.tile, run.tile, iterations) == _rows_of(pieces)
        for k, pieces in enumerate(tiles)
    )


def _executed(peeled: PeeledIterations, row: int, tile: int, iterations: int) -> list[frozenset[int]] | None:
    """Returns the rows of the tile at ``row`` that execute each iteration; None if a row would execute one twice."""
    low, high = peeled.bounds(Code(Block()), iterations, row)  # of numbers, it emits nothing
    assert isinstance(low, int)
    assert isinstance(high, int)
    result = []
    for i in range(iterations):
        parts = [p.rows for p in peeled.first if i < low and p.low <= i < p.high]
        parts += [p.rows for p in peeled.last if i >= high and p.low <= i < p.high]
        parts += [frozenset(range(tile))] if low <= i < high else []
        rows = frozenset[int]().union(*parts)
        if len(rows) < sum(map(len, parts)):
            return None
        result.append(rows)
    return result


def _rows_of(pieces: Sequence[LoopPiece]) -> list[frozenset[int]]:
    """Returns the rows that execute each iteration."""
    return [piece.rows for piece in pieces for _ in range(piece.low, piece.high)]


def _pieces(d: int, rows: Sequence[frozenset[int]], low: int, high: int) -> list[LoopPiece]:
    """Returns iterations ``low`` to ``high`` of loop ``d`` in pieces that the same of ``rows`` execute."""
    found = []
    for taken, iterations in groupby(range(low, high), key=lambda i: rows[i]):
        each = list(iterations)
        found.append(LoopPiece(d, each[0], each[-1] + 1, taken))
    return found
