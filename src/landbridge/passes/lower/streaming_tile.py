"""Chooses tiles for sums of few rows whose columns come from beyond L2, so that memory is read in order.

An example are the values of attention that several heads share: each iteration of the sum reads a short row of memory,
for the few weights of these heads. A tile that has all columns reads whole rows, one after the other, as prefetchers of
the hardware follow it best. 4 weights with values of 128 elements read memory at 30 GB/s that way, as fast as plain
reads, and at 15 GB/s in tiles of half a row each (Zen 4, one core). Where such a tile does not have all weights, the
tiles go through the sum together, block by block (``streamed_sums.py``).
"""

from __future__ import annotations

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.cached_columns import is_beyond
from landbridge.passes.lower.combiners import sums_up
from landbridge.passes.lower.cost import MEMORY_ORDER
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Nest
from landbridge.sizes.size import Extent, Size, at_least, expected_size


def streaming_tile(
    nest: Nest,
    lane: int,
    lanes: int,
    m_dim: int | None,
    inner: tuple[int, ...],
    tile: tuple[int, int],
    registers: int,
    l2_bytes: int,
) -> tuple[int, int] | None:
    """Returns the rows and columns of a tile that has all columns of ``nest``, where tiles like ``tile`` would read
    them in pieces or several times from beyond an L2 of ``l2_bytes``; None if that cannot be or does not pay.

    Columns are vectors along ``lane``.
    """
    rows, extent = 1 if m_dim is None else nest.dims[m_dim].extent, nest.dims[lane].extent
    main = nest.reduction
    if main is None or not sums_up(main) or len(inner) != 1 or nest.bounds or not l2_bytes:
        return None
    if not isinstance(rows, int) or not isinstance(extent, int) or extent % lanes:
        return None
    columns = extent // lanes
    if rows > MEMORY_ORDER.streaming_rows or columns > MEMORY_ORDER.streaming_vectors:
        return None
    if (rows <= tile[0] and columns <= tile[1]) or not _may_be_long(nest, inner[0]):
        return None
    reads = [r for r in main.reads if isinstance(r, ElementAccess)]
    if any(r.guards or r.index.rest for r in reads):
        return None
    streams = [r for r in reads if (m_dim is None or not r.uses(m_dim)) and walk_of(r, lane) is Walk.ALONG]
    if not any(r.index.coeff(inner[0]) == extent and is_beyond(r, l2_bytes) for r in streams):
        return None
    if columns > MEMORY_ORDER.streaming_vectors_of_rows:
        pays = rows == 1 or any(is_beyond(r, MEMORY_ORDER.streaming_l2_sizes * l2_bytes) for r in streams)
        return (1, columns) if pays and columns + 2 <= registers else None
    most = min(rows, (registers - columns - 1) // columns)
    if most < 2:
        return None
    return next((m for m in range(most, 1, -1) if rows % m == 0), most), columns


def _may_be_long(nest: Nest, d: int) -> bool:
    extent: Extent = nest.dims[d].extent
    long = MEMORY_ORDER.streaming_iterations
    return expected_size(extent) >= long or (isinstance(extent, Size) and not at_least(long, extent))
