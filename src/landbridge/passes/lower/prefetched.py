"""Chooses which reads of a reduction are prefetched, and how many iterations in advance.

The rows of a tile share one stream of column vectors. If the stream comes from beyond L1, each multiply-add that waits
for a vector occupies an entry of the scheduler, which is soon full: the 97 entries of Ice Lake ("Optimization Reference
Manual", table of its core) hold two iterations of a loop with 28 multiply-adds, which is less than the latency of L2.
"""

from __future__ import annotations

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_body import computes_indices
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_memory import in_rows
from landbridge.passes.lower.schedule import Schedule
from landbridge.sizes.size import expected_size
from landbridge.targets.machine import LINE_BYTES

#: The prefetch distance in bytes, and the fewest iterations that it takes. Fitted to convolutions of 64 to 1024
#: channels: all distances from 256 to 2048 bytes are faster than no prefetch, and 1024 is fastest.
_UNDERWAY, _FEWEST_ITERATIONS = 1024, 8
#: Tiles with fewer rows use each vector too seldom to pay for its prefetch.
_FEW_ROWS = 4
#: With more tiles of columns, most elements of rows are in L1 already. Prefetching them makes convolutions with groups
#: of 136 and of 68 channels 1.4 and 1.1 times as fast when their weights come from beyond L2.
_FEW_TILES = 3


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
            found.append((r, max(_FEWEST_ITERATIONS, _UNDERWAY // max(step * r.item_bytes, 1))))
    return found


def prefetched_rows(nest: Nest, sched: Schedule) -> list[ElementAccess]:
    """Returns the reads whose elements each tile prefetches for the next tile of rows, once per unrolled loop body.

    These are weights that are read one element per row, where pixels are the lanes, and that few tiles of columns read.
    """
    tiles = sum(expected_size(run.count) for run in sched.n_runs)
    if not sched.prefetches_m or sched.unrolled == 1 or tiles > _FEW_TILES:
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


def _reads(nest: Nest, sched: Schedule) -> list[ElementAccess]:
    """Returns the reads of plain memory that tiles with enough rows share, or take iteration by iteration."""
    main = nest.reduction
    if main is None or sched.lane is None or sched.m_dim is None or sched.horizontal or sched.iterations > 1:
        return []
    if not sched.inner or sched.m_runs[0].tile < _FEW_ROWS or computes_indices(main):
        return []
    reads = (r for r in main.reads if isinstance(r, ElementAccess))
    return [r for r in reads if not in_rows(r.buffer.type) and not is_image(r.buffer.type)]
