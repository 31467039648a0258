"""Columns that stay in registers while all row tiles of a task read them.

Where lanes are summed, every tile of rows reads the same columns. They are loaded once, before the loop over tiles, if
they take at most half of the registers. LLVM does not move the loads there itself, because the loop has fences
(``lb.order_loads``).

Where the columns of a tile are too many for that, tiles get fewer columns and more rows, if the rows may come from
beyond L2 (``retaining_tile``). Each row is then read whole, one after the other, as prefetchers of the hardware follow
it best. The scores of 4 queries for keys of 128 elements read memory at 30 GB/s in tiles of 8x2, as fast as plain
reads, and at 20 GB/s in tiles of 4x4, which read pieces of rows and prefetch later ones (Zen 4, one core).
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.cached_columns import is_beyond
from landbridge.passes.lower.cost import MEMORY_ORDER, UNROLLING
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_memory import in_rows
from landbridge.passes.lower.rows_as_lanes import powers_of_two


def retained_columns(
    nest: Nest,
    lane: int | None,
    lanes: int,
    m_dim: int | None,
    n_dim: int | None,
    inner: Sequence[int],
    unrolled: int,
    n_tile: int,
    registers: int,
) -> tuple[ElementAccess, ...]:
    """Returns the reads of a sum over the lanes of ``lane`` whose vectors are the same for all rows ``m_dim`` and fit
    half of ``registers``; none unless a tile emits its whole sum at once, in ``unrolled`` iterations. ``lane`` is None
    where no lanes are summed.
    """
    main = nest.reduction
    if (
        main is None
        or lane is None
        or m_dim is None
        or tuple(inner) != (lane,)
        or unrolled == 1
        or nest.dims[lane].extent != unrolled * lanes
    ):
        return ()
    found = tuple(r for r in main.reads if isinstance(r, ElementAccess) and not r.varies(m_dim))
    if any(r.guards or is_image(r.buffer.type) or in_rows(r.buffer.type) for r in found):
        return ()
    columns = sum(n_tile if n_dim is not None and r.varies(n_dim) else 1 for r in found)
    if 2 * columns * unrolled > registers or any(walk_of(r, lane) is not Walk.ALONG for r in found):
        return ()
    return found


def retaining_tile(
    nest: Nest,
    lane: int,
    lanes: int,
    m_dim: int,
    n_dim: int,
    n_tile: int,
    registers: int,
    l2_bytes: int,
) -> tuple[int, int] | None:
    """Returns the rows and columns of a tile whose columns stay in registers, if those of ``n_tile`` columns do not
    and rows of memory may come from beyond an L2 of ``l2_bytes``; None if there is no such tile.

    Sums are over the lanes of ``lane``. The columns divide the extent of ``n_dim``.
    """
    main, extent, n_extent = nest.reduction, nest.dims[lane].extent, nest.dims[n_dim].extent
    if main is None or not l2_bytes or not isinstance(extent, int) or not isinstance(n_extent, int):
        return None
    vectors, left = divmod(extent, lanes)
    rows = [r for r in main.reads if isinstance(r, ElementAccess) and r.varies(m_dim)]
    if left or 2 * vectors * n_tile <= registers or not any(is_beyond(r, l2_bytes) for r in rows):
        return None
    if any(r.varies(n_dim) or r.index.coeff(m_dim) != extent for r in rows):
        return None  # their memory has gaps
    most = registers // 2 // vectors
    columns = max((n for n in range(1, most + 1) if n_extent % n == 0), default=0)
    if not columns or n_extent > MEMORY_ORDER.retaining_columns:
        return None
    if columns == 1 and not any(is_beyond(r, MEMORY_ORDER.retaining_l2_sizes * l2_bytes) for r in rows):
        return None
    terms = columns * vectors
    fitting = [m for m in powers_of_two(MEMORY_ORDER.retaining_rows) if m * terms <= UNROLLING.terms_of_whole_rows]
    return fitting[-1], columns
