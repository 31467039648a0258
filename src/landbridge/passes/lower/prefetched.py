"""Chooses which reads of a reduction are prefetched, and how many iterations in advance.

The rows of a tile share one stream of column vectors. If the stream comes from beyond L1, each multiply-add that waits
for a vector occupies an entry of the scheduler, which is soon full: the 97 entries of Ice Lake ("Optimization Reference
Manual", table of its core) hold two iterations of a loop with 28 multiply-adds, which is less than the latency of L2.
"""

from __future__ import annotations

from landbridge.ir.types import shape_of
from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.cost import PREFETCHES
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_body import computes_indices
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_memory import in_rows
from landbridge.passes.lower.schedule import Schedule
from landbridge.sizes.size import Size, expected_size, product
from landbridge.targets.machine import LINE_BYTES


def prefetched(nest: Nest, sched: Schedule) -> list[tuple[ElementAccess, int]]:
    """Returns the reads whose vectors all rows of a tile share, each with its prefetch distance in iterations of the
    last reduction loop.
    """
    found = []
    for r in _reads(nest, sched):
        assert sched.m_dim is not None and sched.lane is not None
        last = sched.inner[-1]
        step = r.index.coeff(last)
        if r.varies(sched.m_dim) or not isinstance(step, int) or r.index.nonlinear_in(last):
            continue
        if walk_of(r, sched.lane) is Walk.ALONG and step > 0:
            found.append((r, max(PREFETCHES.iterations, PREFETCHES.distance // max(step * r.item_bytes, 1))))
    return found


def streamed_into_l2(nest: Nest, sched: Schedule) -> list[tuple[ElementAccess, int]]:
    """Returns the reads of column vectors that are prefetched into L2, each with its distance in iterations of the last
    reduction loop.

    One tile has all rows, so that each vector is read once, and several have the columns, so that each reads pieces of
    memory, which prefetchers of the hardware do not follow. They follow memory without gaps better than prefetches of
    ours do. Columns that L2 holds are left out, and those that are prefetched into L1.
    """
    if not sched.streams or len(sched.m_runs) != 1 or sched.m_runs[0].count != 1:
        return []
    if sum(expected_size(run.count) for run in sched.n_runs) == 1:
        return []
    n_tile, found = sched.n_runs[0].tile, []
    for r in _reads(nest, sched):
        assert sched.m_dim is not None and sched.lane is not None
        last = sched.inner[-1]
        step = r.index.coeff(last)
        if r.varies(sched.m_dim) or not isinstance(step, int) or r.index.nonlinear_in(last):
            continue
        if walk_of(r, sched.lane) is Walk.ALONG and step * r.item_bytes >= LINE_BYTES and _is_large(r):
            found.append((r, PREFETCHES.l2_stream // (n_tile * sched.lanes * r.item_bytes)))
    return found


def prefetched_rows(nest: Nest, sched: Schedule) -> list[ElementAccess]:
    """Returns the reads whose elements each tile prefetches for the next tile of rows, once per unrolled loop body.

    These are weights that are read one element per row, where pixels are the lanes, and that few tiles of columns read.
    """
    tiles = sum(expected_size(run.count) for run in sched.n_runs)
    if not sched.prefetches_m or sched.unrolled == 1 or tiles > PREFETCHES.column_tiles:
        return []
    found = []
    for r in _reads(nest, sched):
        assert sched.m_dim is not None and sched.lane is not None
        step, row = (r.index.coeff(d) for d in (sched.inner[-1], sched.m_dim))
        if not r.varies(sched.m_dim) or r.uses(sched.lane) or r.guards or r.index.rest:
            continue
        if not isinstance(step, int) or not isinstance(row, int):
            continue
        if 0 < step * r.item_bytes < LINE_BYTES <= row * r.item_bytes:
            found.append(r)
    return found


def prefetched_into_l2(nest: Nest, sched: Schedule) -> list[tuple[ElementAccess, int]]:
    """Returns the reads of rows whose lanes are summed that are prefetched into L2, each with its distance in elements.

    Each vector has many multiply-adds, which wait for it in the scheduler, so that few loads are under way. Rows that
    tiles read whole, one after the other, are left to the prefetchers of the hardware: the scores of 4 queries for keys
    of 64 elements take 0.73 of the time from memory then, and 1.07 from L3 (Zen 4).
    """
    main, lane = nest.reduction, sched.lane
    if main is None or lane is None or not sched.horizontal or sched.m_dim is None or sched.n_dim is None:
        return []
    if sched.unrolled == 1:
        return []
    whole = nest.dims[lane].extent if nest.dims[lane].extent == sched.unrolled * sched.lanes else None
    if sched.n_runs[0].tile < PREFETCHES.columns:
        return []
    found = []
    for r in main.reads:
        if not isinstance(r, ElementAccess) or not r.varies(sched.m_dim) or r.varies(sched.n_dim):
            continue
        if whole is not None and r.index.coeff(sched.m_dim) == whole:
            continue
        if _is_large(r):
            found.append((r, PREFETCHES.l2_distance // r.item_bytes))
    return found


def _is_large(r: ElementAccess) -> bool:
    """Returns whether L2 does not hold all of the memory that ``r`` reads, or may not."""
    count = product(shape_of(r.buffer.type))
    return isinstance(count, Size) or count * r.item_bytes >= PREFETCHES.large_bytes


def _reads(nest: Nest, sched: Schedule) -> list[ElementAccess]:
    """Returns the reads of plain memory that tiles with enough rows share, or take iteration by iteration."""
    main = nest.reduction
    if main is None or sched.lane is None or sched.m_dim is None or sched.horizontal or sched.iterations > 1:
        return []
    if not sched.inner or sched.m_runs[0].tile < PREFETCHES.rows or computes_indices(main):
        return []
    reads = (r for r in main.reads if isinstance(r, ElementAccess))
    return [r for r in reads if not in_rows(r.buffer.type) and not is_image(r.buffer.type)]
