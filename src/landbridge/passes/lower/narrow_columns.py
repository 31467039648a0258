"""Gives a last column with few lanes narrower vectors."""

from __future__ import annotations

from dataclasses import replace

from landbridge.passes.lower.block_loops import last_column_lanes
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.register_block import TileSpace, register_block
from landbridge.passes.lower.row_cut import row_cut
from landbridge.passes.lower.runs import Run, tile_runs
from landbridge.passes.lower.schedule import Schedule, VectorUnit
from landbridge.sizes.size import Size


def narrow_last_column(nest: Nest, sched: Schedule, machine: VectorUnit, *, repeats: bool) -> list[Schedule]:
    """Returns ``sched``, or two schedules that do its work: a last column with at most half a vector gets narrower
    vectors.

    24 channels in blocks of 16 then cost 24 lanes instead of 32, if narrower vectors are cheaper. If they are not, only
    a column without neighbours gets them, because its loads and stores are shorter; a column with neighbours shares
    their loads of rows. The same holds for the pixels of a line, unless narrower vectors take half the time: 49 pixels
    then cost 50 lanes instead of 64.
    """
    ends = _last_column(nest, sched)
    if ends is None or sched.m_dim == sched.lane:
        return [sched]
    last, left, tile = ends
    plain = sched.n_dim == sched.lane
    cheaper = machine.two_passes if plain else not last or machine.narrow_is_cheaper
    if not left or left > tile // 2 or not cheaper:
        return [sched]
    cut = row_cut(nest, sched.m_dim, sched.lane, sched.lanes, repeats=repeats)
    if isinstance(cut.extent, Size) and not cut.overlaps:
        return [sched]
    lanes = max(2, 1 << (left - 1).bit_length())  # OpenCL C has no vectors of one lane
    mask = left if left != lanes and last_column_lanes(nest, sched.n_dim, sched.lane, sched.lanes) else 0
    window = sched.window
    space = TileSpace(cut.pieces, cut.most, 1, machine.registers, sched.iterations, window=window, core=machine.core)
    tile, _ = register_block(space)
    first = last * (sched.lanes // lanes) if plain else last
    tail = replace(sched, lanes=lanes, m_runs=cut.runs(tile), n_runs=(Run(first, 1, 1, mask),))
    if not last:
        return [tail]
    space = replace(
        space,
        n_extent=min(last, max(run.tile for run in sched.n_runs)) if plain else last,
        beyond_l2=machine.beyond_l2(nest, sched.lane, sched.m_dim),
        l1_rows=machine.l1_rows(nest, sched.lane, sched.m_dim, sched.inner),
    )
    m_tile, n_tile = register_block(space)
    if machine.tile is not None and machine.tile == sched.candidates[0][0]:
        m_tile, n_tile = machine.tile[0], min(machine.tile[1], space.n_extent)
    whole = replace(sched, m_runs=cut.runs(m_tile), n_runs=tile_runs(last, n_tile, 0))
    return [whole, tail]


def _last_column(nest: Nest, sched: Schedule) -> tuple[int, int, int] | None:
    """Returns the number of whole columns, the lanes in the column after them, and the lanes of a column; None if that
    is unknown.
    """
    for b in nest.bounds:
        if (b.outer, b.inner) == (sched.n_dim, sched.lane):
            return *divmod(b.extent, b.tile), b.tile
    if (
        sched.lane is None
        or sched.n_dim != sched.lane
        or nest.reduction is None
        or sched.horizontal
        or sched.transposed
    ):
        return None
    extent = nest.dims[sched.lane].extent
    if not isinstance(extent, int) or extent < sched.lanes:
        return None
    return *divmod(extent, sched.lanes), sched.lanes
