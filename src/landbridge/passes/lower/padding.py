"""Padding at compile time: which reads of a nest leave their buffer, and which loops and tiles avoid them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from landbridge.passes.lower.access import ElementAccess, Guard
from landbridge.passes.lower.lane_walk import lane_guards
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.operands import EdgeTurns, RowPadding, TurnRows
from landbridge.passes.lower.row_edges import OpenEdges, open_edges, row_guards, skips_padding
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule
from landbridge.sizes.size import Extent, Size, at_least, likely

#: Turns of the loops within one that edge tiles leave turns out of, below which asking for the tile's place costs more
#: than it saves in code.
_FEWEST_WITHIN = 8
#: Edge tiles emitted one by one; beyond, padded reads test their bounds at run time.
MAX_EDGE_TILES = 6


class Padding:
    """What is known of the padded reads of a scheduled nest, before any of it is emitted.

    ``skips``: leaving out padded iterations of the reduction changes nothing, so loops are clipped to the buffer.
    ``rows``: the rows whose every read is inside, when row tiles at the edge are decided one by one; else None.
    """

    def __init__(self, nest: Nest, sched: Schedule) -> None:
        self._nest, self._sched = nest, sched
        self.skips = nest.reduction is not None and skips_padding(nest.reduction)
        self.row_guards = row_guards(nest, sched.rows, sched.lane)
        self.rows = self._inner_rows()
        reads = [r for s in nest.stages for r in s.reads if isinstance(r, ElementAccess)]
        lane = sched.lane
        #: Tests for padding that the lanes of a vector may answer differently.
        self.lane_guards = list[Guard]()
        for g in (g for r in reads if lane is not None for g in lane_guards(r, lane)):
            if g not in self.lane_guards:
                self.lane_guards.append(g)

    def row_tiles(self) -> list[tuple[Run, RowPadding]]:
        """Runs of row tiles, and what is known of each."""
        runs = list(self._sched.row_runs)
        span = self.rows
        if span is None:
            return [(r, RowPadding.BY_TURN if self.open_edges(r) else RowPadding.TESTED) for r in runs]
        low, high = span
        result: list[tuple[Run, RowPadding]] = []
        for run in runs:
            if self.edge_turns(run) is not None:
                result.append((run, RowPadding.EDGES))
                continue
            inside = [
                run.start + k * run.tile >= low and run.start + (k + 1) * run.tile <= high for k in range(run.count)
            ]
            k = 0
            while k < run.count:
                end = k + 1
                while inside[k] and end < run.count and inside[end]:
                    end += 1
                padding = RowPadding.INSIDE if inside[k] else RowPadding.BY_TURN
                result.append((Run(run.start + k * run.tile, end - k, run.tile, run.mask), padding))
                k = end
        return result

    def _inner_rows(self) -> tuple[int, int] | None:
        """The rows whose every read is inside; None when there is nothing to split or too much."""
        guards = self.row_guards
        rows = self._sched.rows
        if not guards or rows is None:
            return None
        extent = self._nest.dims[rows].extent
        if isinstance(extent, Size):
            return None

        def inside(m: int) -> bool:
            for g, r in guards:
                first = g.index.const + g.index.coeff(rows) * m
                last = first + g.index.coeff(r) * (self._nest.dims[r].extent - 1)
                if min(first, last) < 0 or max(first, last) >= g.extent:
                    return False
            return True

        good = [m for m in range(extent) if inside(m)]
        low, high = (good[0], good[-1] + 1) if good else (extent, extent)
        edges = sum(
            not (low <= run.start + k * run.tile and run.start + (k + 1) * run.tile <= high)
            for run in self._sched.row_runs
            for k in range(run.count)
        )
        return (low, high) if edges <= MAX_EDGE_TILES else None

    def row_limits(self, tile: int) -> list[tuple[int, Extent]]:
        """``(factor, most)``: every read of the ``tile`` rows from ``row`` on is inside where ``factor * row <= most``
        for each of these. Empty where that is not all there is to it."""
        rows, found = self._sched.rows, dict[tuple[int, Extent], None]()
        for g, r in self.row_guards:
            c, turns = g.index.coeff(rows), self._nest.dims[r].extent - 1  # type: ignore[arg-type]
            if c <= 0 or isinstance(turns, Size) or isinstance(g.index.const, Size):
                return []
            ends = sorted((0, g.index.coeff(r) * turns))
            found[-c, g.index.const + ends[0]] = None
            found[c, g.extent - 1 - g.index.const - ends[1] - c * (tile - 1)] = None
        return list(found)

    def open_edges(self, run: Run) -> OpenEdges | None:
        """The edges of an open number of rows, whose first and last tile ``run`` has one of; None where they are not
        the same for all numbers, or a tile may have both."""
        if not run.leads:
            return None
        edges = open_edges(self._nest, self.row_guards, self._sched.rows)
        return edges if edges is not None and edges.first + edges.last <= run.tile else None

    def edge_turns(self, run: Run) -> EdgeTurns | None:
        """The turns that rows of the first and the last tile of ``run`` leave out, where the code of one tile may do
        all of it. None where no row does, where one tile is all, or where it is not as simple."""
        along = self._sched.rows
        if along is None or len({d for _, d in self.row_guards}) != 1 or self._sched.horizontal:
            return None
        (g, d), *_ = self.row_guards
        rows, turns, step = self._nest.dims[along].extent, self._nest.dims[d].extent, g.index.coeff(along)
        within = self._sched.inner[self._sched.inner.index(d) + 1 :]
        if isinstance(turns, Size) or math.prod(likely(self._nest.dims[x].extent) for x in within) < _FEWEST_WITHIN:
            return None
        alike = all((o.index.coeff(along), o.index.coeff(d)) == (step, 1) for o, _ in self.row_guards)
        if not isinstance(step, int) or step < 1 or not alike or self._sched.turns > 1:
            return None
        if isinstance(rows, Size):
            found = None if run.last is None else self._edge_turns(d, turns, run.tile, 0, run.last, step)
            if found is None:
                return None
            # the tiles next to both ends may begin one row from them
            left_out = (
                max((p.high for p in found.first), default=0),
                max((turns - p.low for p in found.last), default=0),
            )
            return found if max(left_out) <= step else None
        end = run.start + run.count * run.tile
        first, last = (0 if run.start == 0 else None), (rows - run.tile if end == rows else None)
        found = None if run.tile == rows else self._edge_turns(d, turns, run.tile, first, last, step)
        return found if found is not None and self._are_all(run, found, turns) else None

    def _edge_turns(
        self, d: int, turns: int, tile: int, first: Extent | None, last: Extent | None, step: int
    ) -> EdgeTurns | None:
        """The turns that rows of a tile leave out of loop ``d``: of one that begins at row ``first``, and of one that
        does at ``last``; None where none does, or they are not at either end of the loop."""

        def taken(row: Extent | None) -> list[frozenset[int]]:
            if row is None:
                return [frozenset(range(tile))] * turns
            return [frozenset(m for m in range(tile) if self.row_inside(row + m, d, i)) for i in range(turns)]

        every = frozenset(range(tile))
        low, high = taken(first), taken(last)
        begin = next((i for i, rows in enumerate(low) if rows == every), turns)
        end = next((i for i in reversed(range(turns)) if high[i] == every), -1) + 1
        if begin > end or any(rows != every for rows in (*low[begin:], *high[:end])) or (begin, end) == (0, turns):
            return None
        return EdgeTurns(
            d, tuple(_runs(low, 0, begin)), tuple(_runs(high, end, turns)), step, 0 if last is None else last
        )

    def _are_all(self, run: Run, edges: EdgeTurns, turns: int) -> bool:
        """Whether no row of a known number leaves out another turn than ``edges`` say."""
        for k in range(run.count):
            left = {i: set(range(run.tile)) for i in range(turns)}
            for parts, here in ((edges.first, k == 0), (edges.last, k == run.count - 1)):
                for part in parts if here else ():
                    for i in range(part.low, part.high):
                        left[i] &= part.rows
            row = run.start + k * run.tile
            if any(self.row_inside(row + m, edges.dim, i) != (m in left[i]) for i in left for m in range(run.tile)):
                return False
        return True

    def row_inside(self, row: Extent, d: int, i: int) -> bool:
        """Whether turn ``i`` of reduction loop ``d`` reads inside the buffers at ``row``. Of an open number of rows the
        first and the last tile are decided, each of which has none of the other end's padding."""

        def holds(g: Guard) -> bool:
            index = g.index.const + g.index.coeff(self._sched.rows) * row + g.index.coeff(d) * i  # type: ignore[arg-type]
            return at_least(index, 0) is not False and at_least(g.extent - 1, index) is not False

        return all(r != d or holds(g) for g, r in self.row_guards)

    def at_edges(self, d: int) -> bool:
        """Whether edge tiles decide reduction loop ``d`` turn by turn."""
        return any(r == d for _, r in self.row_guards)

    def settled_by_tile(self, padding: RowPadding) -> list[Guard]:
        """Guards that hold at every read of a tile because of the rows it has."""
        return [g for g, _ in self.row_guards] if padding is RowPadding.INSIDE else []

    def settled_by_turn(self, d: int) -> list[Guard]:
        """Guards that hold at a row of an edge tile where ``row_inside`` says so of the turn of loop ``d``."""
        return [g for g, r in self.row_guards if r == d]


def _runs(rows: Sequence[frozenset[int]], low: int, high: int) -> Iterator[TurnRows]:
    """Turns ``low`` to ``high``, those that the same rows take together; ``rows`` take each."""
    for taken, turns in groupby(range(low, high), key=lambda i: rows[i]):
        each = list(turns)
        yield TurnRows(each[0], each[-1] + 1, taken)
