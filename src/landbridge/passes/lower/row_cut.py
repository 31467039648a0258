"""How the rows of a nest may be cut into tiles of a register block."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_edges import open_edges, row_guards
from landbridge.passes.lower.runs import Run, dividing_tile, even_runs, masked_run, overlapping_run, tile_runs
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, at_least, ceildiv, expected_size

#: How many times as long as its padding a signal is at least, mostly.
_MARGINS = 4


@record(frozen=True)
class RowCut:
    """``extent`` rows; where they are the lane, vectors.

    ``overlaps``: of an open number the last tile ends where the rows do, and is none that has padding of both ends:
    there are ``margin`` rows more than a tile has. ``once``: each row is stored once all the same. ``ends_within``: the
    elements of an open lane whose last vector is masked. ``mask``: the lanes of a known one's last vector, 0 for all.
    ``even``: what is left over shares rows with the tile before it, where it is short.
    """

    extent: Extent
    overlaps: bool = False
    margin: int = 0
    once: bool = False
    ends_within: Size | None = None
    lanes: int = 1
    mask: int = 0
    even: bool = False

    @property
    def most(self) -> int:
        """The most rows that a tile may have, for all of them to go in tiles where their number is a likely one."""
        return max(self._expected_size, 1) - self.margin

    def runs(self, tile: int) -> tuple[Run, ...]:
        """All rows in tiles of ``tile``, or a little less where that leaves nothing over."""
        if self.ends_within is not None:
            return (masked_run(self.ends_within, self.lanes, tile),)
        dividing = dividing_tile(self.extent, tile)
        if self.overlaps and not (self.once and self.extent % dividing == 0):
            return (overlapping_run(self.extent, tile, once=self.once),)
        runs = tile_runs(self.extent, dividing, self.mask)
        return even_runs(runs) if self.even else runs

    def pieces(self, tile: int) -> list[tuple[int, int]]:
        """The rows of the tiles, and how many such tiles there are, likely."""
        if self._expected_size != expected_size(self.extent):
            return [(tile, -(-self._expected_size // tile))]
        return [(run.tile, expected_size(run.count)) for run in self.runs(tile)]

    @property
    def _expected_size(self) -> int:
        """The likely number of rows: where nobody says one, no fewer than ``_MARGINS`` times those with padding."""
        is_known = isinstance(self.extent, int) or any(s.expected is not None for s in self.extent.symbols.values())
        return max(expected_size(self.extent), 0 if is_known else _MARGINS * self.margin)


def row_cut(nest: Nest, rows: int | None, lane: int | None, lanes: int, *, repeats: bool) -> RowCut:
    """How loop ``rows`` of ``nest`` may be cut; it is ``lane`` where vectors of ``lanes`` lie along it.

    ``repeats``: an element may be computed twice.
    """
    extent = tiles_along(nest, rows, lane, lanes)
    if rows is None:
        return RowCut(extent)
    if rows == lane:
        ends_within = open_end(nest, lane, lanes)
        if ends_within is not None:
            return RowCut(extent, ends_within=ends_within, lanes=lanes)
    if isinstance(extent, Size) and (repeats or _may_be_dropped(nest, rows, lane)) and _can_overlap(nest, rows):
        edges = open_edges(nest, row_guards(nest, rows, lane), rows)
        if repeats:
            return RowCut(extent, overlaps=True, margin=max(edges.first, edges.last) if edges else 0)
        if not edges:
            return RowCut(extent, overlaps=True, once=True)
    even = isinstance(extent, int) and bool(row_guards(nest, rows, lane))
    return RowCut(extent, mask=nest.dims[rows].extent % lanes if rows == lane else 0, even=even)


def tiles_along(nest: Nest, dim: int | None, lane: int | None, lanes: int) -> Extent:
    """The iterations of ``dim``, of a lane its vectors."""
    if dim is None:
        return 1
    extent = nest.dims[dim].extent
    return ceildiv(extent, lanes) if dim == lane else extent


def open_end(nest: Nest, lane: int | None, lanes: int) -> Size | None:
    """The extent of a lane that is open and may end in the midst of a vector."""
    extent: Extent = 0 if lane is None else nest.dims[lane].extent
    return extent if isinstance(extent, Size) and extent % lanes != 0 else None


def _may_be_dropped(nest: Nest, rows: int, lane: int | None) -> bool:
    """Whether ``rows`` of a reduction may be computed from what they have replaced already, and the results dropped:
    floats, of which none ends a program."""
    return (
        nest.reduction is not None
        and rows != lane
        and all(isinstance(w.element, AnyFloat) for s in nest.stages for w in s.writes)
        and not any(r.guards for s in nest.stages for r in s.reads if isinstance(r, ElementAccess))
    )


def _can_overlap(nest: Nest, rows: int) -> bool:
    """Whether the last tile of ``rows`` may begin anywhere, and that is proved to stay inside the buffers."""
    indices = [i for a in nest.accesses() for i in (a.index, *(g.index for g in a.guards))]
    return not nest.loaded() and all(
        at_least(i.coeff(rows), 0) is not None and not i.nonlinear_in(rows) for i in indices
    )
