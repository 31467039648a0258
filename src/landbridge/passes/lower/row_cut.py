"""Decides how the rows of a nest may be cut into tiles."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.cost import EDGES
from landbridge.passes.lower.guards import row_edges, row_guards
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.runs import Run, dividing_tile, even_runs, masked_run, overlapping_run, tile_runs
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, at_least, ceildiv, expected_size


@record(frozen=True)
class RowCut:
    """The ways in which ``extent`` rows may be cut; if rows are the lanes, the extent counts vectors.

    ``overlaps``: for an open number of rows, the last tile ends with the last row, and overlaps the one before it. No
    tile contains padding of both ends, because there are at least ``margin`` rows more than a tile has. ``once``: each
    row is nevertheless stored only once. ``ends_within``: the elements of an open lane loop, whose last vector is
    masked. ``mask``: the active lanes of the last vector of a known one, 0 for all. ``even``: if the rows left over are
    few, they share rows with the tile before them.
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
        """Returns the most rows of a tile for which all rows, at their expected number, are covered by tiles."""
        return max(self._expected_size, 1) - self.margin

    def runs(self, tile: int) -> tuple[Run, ...]:
        """Returns all rows in tiles of ``tile`` rows, or of slightly fewer if nothing is left over then."""
        if self.ends_within is not None:
            return (masked_run(self.ends_within, self.lanes, tile),)
        dividing = dividing_tile(self.extent, tile)
        if self.overlaps and not (self.once and self.extent % dividing == 0):
            return (overlapping_run(self.extent, tile, once=self.once),)
        runs = tile_runs(self.extent, dividing, self.mask)
        return even_runs(runs) if self.even else runs

    def pieces(self, tile: int) -> list[tuple[int, int]]:
        """Returns the rows of each kind of tile and the expected number of such tiles."""
        if self._expected_size != expected_size(self.extent):
            return [(tile, -(-self._expected_size // tile))]
        return [(run.tile, expected_size(run.count)) for run in self.runs(tile)]

    @property
    def _expected_size(self) -> int:
        """Returns the expected number of rows; if none is declared, at least ``EDGES.signal_of_padding`` times those of
        padding.
        """
        is_known = isinstance(self.extent, int) or any(s.expected is not None for s in self.extent.symbols.values())
        return max(expected_size(self.extent), 0 if is_known else EDGES.signal_of_padding * self.margin)


def row_cut(nest: Nest, m_dim: int | None, lane: int | None, lanes: int, *, repeats: bool) -> RowCut:
    """Returns how loop ``m_dim`` of ``nest`` may be cut; it equals ``lane`` if vectors of ``lanes`` lie along it.

    ``repeats``: an element may be computed twice.
    """
    extent = tiles_along(nest, m_dim, lane, lanes)
    if m_dim is None:
        return RowCut(extent)
    if m_dim == lane:
        ends_within = open_end(nest, lane, lanes)
        if ends_within is not None:
            return RowCut(extent, ends_within=ends_within, lanes=lanes)
    if isinstance(extent, Size) and (repeats or _may_be_dropped(nest, m_dim, lane)) and _can_overlap(nest, m_dim):
        edges = row_edges(nest, row_guards(nest, m_dim, lane), m_dim)
        if repeats:
            return RowCut(extent, overlaps=True, margin=max(edges.first, edges.last) if edges else 0)
        if not edges:
            return RowCut(extent, overlaps=True, once=True)
    even = isinstance(extent, int) and bool(row_guards(nest, m_dim, lane))
    return RowCut(extent, mask=nest.dims[m_dim].extent % lanes if m_dim == lane else 0, even=even)


def tiles_along(nest: Nest, dim: int | None, lane: int | None, lanes: int) -> Extent:
    """Returns the iterations of ``dim``; if it is the lane loop, the number of vectors."""
    if dim is None:
        return 1
    extent = nest.dims[dim].extent
    return ceildiv(extent, lanes) if dim == lane else extent


def open_end(nest: Nest, lane: int | None, lanes: int) -> Size | None:
    """Returns the extent of the lane loop if it is open and may end inside a vector; else None."""
    extent: Extent = 0 if lane is None else nest.dims[lane].extent
    return extent if isinstance(extent, Size) and extent % lanes != 0 else None


def _may_be_dropped(nest: Nest, m_dim: int, lane: int | None) -> bool:
    """Returns whether ``m_dim`` of a reduction may be computed again from inputs that results have overwritten, and
    dropped.

    That is allowed for floats, because no value of a float makes a computation trap.
    """
    return (
        nest.reduction is not None
        and m_dim != lane
        and all(isinstance(w.element, AnyFloat) for s in nest.stages for w in s.writes)
        and not any(r.guards for s in nest.stages for r in s.reads if isinstance(r, ElementAccess))
    )


def _can_overlap(nest: Nest, m_dim: int) -> bool:
    """Returns whether the last tile along ``m_dim`` may begin at any row, with all accesses proved to be in bounds."""
    indices = [i for a in nest.accesses() for i in (a.index, *(g.index for g in a.guards))]
    return not nest.loaded() and all(
        at_least(i.coeff(m_dim), 0) is not None and not i.nonlinear_in(m_dim) for i in indices
    )
