"""Decides at compile time which reads of a nest are in padding, and which loops and tiles avoid them."""

from __future__ import annotations

from landbridge.passes.lower.access import ElementAccess, Guard
from landbridge.passes.lower.cost import EDGES
from landbridge.passes.lower.edge_iterations import EdgeIterations, edge_iterations
from landbridge.passes.lower.lane_walk import lane_guards
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.operands import RowPadding
from landbridge.passes.lower.row_edges import OpenEdges, open_edges, row_guards, row_inside, skips_padding
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule
from landbridge.sizes.size import Extent, Size


class Padding:
    """Facts about the padded reads of a scheduled nest, before any of it is emitted.

    ``skips``: leaving out padded iterations of the reduction changes no result, so that loops are clipped to the
    buffer. ``rows``: the range of rows whose every read is inside, if edge tiles are emitted one by one; else None.
    """

    def __init__(self, nest: Nest, sched: Schedule) -> None:
        self._nest, self._sched = nest, sched
        self.skips = nest.reduction is not None and skips_padding(nest.reduction)
        self.row_guards = row_guards(nest, sched.m_dim, sched.lane)
        self.rows = self._inner_rows()
        reads = [r for s in nest.stages for r in s.reads if isinstance(r, ElementAccess)]
        lane = sched.lane
        #: Guards whose result may differ between the lanes of a vector.
        self.lane_guards = list[Guard]()
        for g in (g for r in reads if lane is not None for g in lane_guards(r, lane)):
            if g not in self.lane_guards:
                self.lane_guards.append(g)

    def row_tiles(self) -> list[tuple[Run, RowPadding]]:
        """Returns the runs of row tiles, each with what is known of its padding."""
        runs = list(self._sched.m_runs)
        span = self.rows
        if span is None:
            return [(r, RowPadding.BY_ITERATION if self.open_edges(r) else RowPadding.TESTED) for r in runs]
        low, high = span
        result: list[tuple[Run, RowPadding]] = []
        for run in runs:
            if self.edge_iterations(run) is not None:
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
                padding = RowPadding.INSIDE if inside[k] else RowPadding.BY_ITERATION
                result.append((Run(run.start + k * run.tile, end - k, run.tile, run.mask), padding))
                k = end
        return result

    def _inner_rows(self) -> tuple[int, int] | None:
        """Returns the range of rows whose every read is inside; None if no row is padded, or if there are too many edge
        tiles.
        """
        guards = self.row_guards
        m_dim = self._sched.m_dim
        if not guards or m_dim is None:
            return None
        extent = self._nest.dims[m_dim].extent
        if isinstance(extent, Size):
            return None

        def inside(m: int) -> bool:
            for g, r in guards:
                first = g.index.const + g.index.coeff(m_dim) * m
                last = first + g.index.coeff(r) * (self._nest.dims[r].extent - 1)
                if min(first, last) < 0 or max(first, last) >= g.extent:
                    return False
            return True

        good = [m for m in range(extent) if inside(m)]
        low, high = (good[0], good[-1] + 1) if good else (extent, extent)
        edges = sum(
            not (low <= run.start + k * run.tile and run.start + (k + 1) * run.tile <= high)
            for run in self._sched.m_runs
            for k in range(run.count)
        )
        return (low, high) if edges <= EDGES.tiles else None

    def row_limits(self, tile: int) -> list[tuple[int, Extent]]:
        """Returns conditions for the ``tile`` rows from ``row`` on to be inside: ``factor * row <= most`` for each
        ``(factor, most)``.

        Returns no conditions if these would not be sufficient.
        """
        m_dim, found = self._sched.m_dim, dict[tuple[int, Extent], None]()
        for g, r in self.row_guards:
            c, iterations = g.index.coeff(m_dim), self._nest.dims[r].extent - 1  # type: ignore[arg-type]
            if c <= 0 or isinstance(iterations, Size) or isinstance(g.index.const, Size):
                return []
            ends = sorted((0, g.index.coeff(r) * iterations))
            found[-c, g.index.const + ends[0]] = None
            found[c, g.extent - 1 - g.index.const - ends[1] - c * (tile - 1)] = None
        return list(found)

    def open_edges(self, run: Run) -> OpenEdges | None:
        """Returns the edges of an open number of rows, if ``run`` has a first and a last tile; else None.

        Also returns None if the edges depend on the number of rows, or if one tile may contain both.
        """
        if not run.leads:
            return None
        edges = open_edges(self._nest, self.row_guards, self._sched.m_dim)
        return edges if edges is not None and edges.first + edges.last <= run.tile else None

    def edge_iterations(self, run: Run) -> EdgeIterations | None:
        """Returns the iterations that rows of the first and last tile of ``run`` leave out, if one piece of code serves
        all tiles; else None.
        """
        return edge_iterations(self._nest, self._sched, self.row_guards, run)

    def row_inside(self, row: Extent, d: int, i: int) -> bool:
        """Returns whether iteration ``i`` of reduction loop ``d`` reads inside the buffers at ``row``."""
        return row_inside(self.row_guards, self._sched.m_dim, row, d, i)

    def at_edges(self, d: int) -> bool:
        """Returns whether edge tiles decide reduction loop ``d`` iteration by iteration."""
        return any(r == d for _, r in self.row_guards)

    def settled_by_tile(self, padding: RowPadding) -> list[Guard]:
        """Returns the guards that hold for every read of a tile because of its rows."""
        return [g for g, _ in self.row_guards] if padding is RowPadding.INSIDE else []

    def settled_by_iteration(self, d: int) -> list[Guard]:
        """Returns the guards that hold in an edge tile for the rows and iterations of loop ``d`` for which
        ``row_inside`` is true.
        """
        return [g for g, r in self.row_guards if r == d]
