"""Which vectors of a reduction are asked for before their iteration, and how long before.

A tile of rows reads its columns' vectors in one stream from beyond L1. A multiply-add that waits for one
keeps its place among those that may begin, and soon all places are taken: of a loop that multiplies 28 times an
iteration two iterations fit the 97 of Ice Lake ("Optimization Reference Manual", table of its core), less than L2
takes.
"""

from __future__ import annotations

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_body import computes_places
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_memory import in_rows
from landbridge.passes.lower.schedule import Schedule
from landbridge.sizes.size import expected_size
from landbridge.targets.machine import LINE_BYTES

#: Bytes of a stream that are underway, and the fewest iterations: fitted to convolutions of 64 to 1024 channels, where
#: 256 to 2048 bytes are better than none, and 1024 best.
_UNDERWAY, _FEWEST_ITERATIONS = 1024, 8
#: Rows below which a vector is multiplied too few times for what asking for it takes.
_FEW_ROWS = 4
#: Tiles of columns above which most numbers of rows are near: convolutions of groups of 136 and of 68 channels are
#: 1.4 and 1.1 times as fast where their weights come from beyond L2.
_FEW_TILES = 3


def prefetched(nest: Nest, sched: Schedule) -> list[tuple[ElementAccess, int]]:
    """The reads of the reduction whose vectors all rows of a tile share, with the iterations of the last loop by which
    each is asked for before it is read."""
    found = []
    for r in _reads(nest, sched):
        assert sched.rows is not None and sched.lane is not None
        last = sched.inner[-1]
        step = r.index.coeff(last)
        if r.varies(sched.rows) or not isinstance(step, int) or r.index.nonlinear_in(last):
            continue
        if walk_of(r, sched.lane) is Walk.ALONG and step > 0:
            found.append((r, max(_FEWEST_ITERATIONS, _UNDERWAY // max(step * r.item_bytes, 1))))
    return found


def prefetched_rows(nest: Nest, sched: Schedule) -> list[ElementAccess]:
    """The reads of the reduction of which each tile of rows asks for the next one's numbers, once for all iterations
    that its body has: weights where pixels are lanes, each of which few tiles of columns read."""
    tiles = sum(expected_size(run.count) for run in sched.column_runs)
    if not sched.rows_ahead or sched.unrolled == 1 or tiles > _FEW_TILES:
        return []
    found = []
    for r in _reads(nest, sched):
        assert sched.rows is not None and sched.lane is not None
        step, row = (r.index.coeff(d) for d in (sched.inner[-1], sched.rows))
        if not r.varies(sched.rows) or r.uses(sched.lane) or r.guards or r.index.rest:
            continue
        if not isinstance(step, int) or not isinstance(row, int):
            continue
        if 0 < step * r.item_bytes < LINE_BYTES <= row * r.item_bytes:
            found.append(r)
    return found


def _reads(nest: Nest, sched: Schedule) -> list[ElementAccess]:
    """The reads of the reduction that tiles of enough rows share or take iteration by iteration, of plain memory."""
    main = nest.reduction
    if main is None or sched.lane is None or sched.rows is None or sched.horizontal or sched.iterations > 1:
        return []
    if not sched.inner or sched.row_runs[0].tile < _FEW_ROWS or computes_places(main):
        return []
    reads = (r for r in main.reads if isinstance(r, ElementAccess))
    return [r for r in reads if not in_rows(r.buffer.type) and not is_image(r.buffer.type)]
