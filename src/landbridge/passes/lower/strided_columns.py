"""Which columns of a product lie apart in memory, so that tasks copy them before they multiply with them.

Each tile of rows reads the columns of its task from first to last. Where the vectors of neighbouring iterations are a
row of memory apart they may fall in few sets of a cache, which then does not keep them until the next tile: 1024 rows
of 4 KiB fall in 32 sets of 1024. Where rows are no multiple of its lines, each vector is of two. So columns of two
inputs' products are copied by tasks of enough rows (Goto and van de Geijn, "Anatomy of High-Performance Matrix
Multiplication", 2008, section 4.2.3), and sums are what they are without.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_choice import lies_along_sums
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_memory import in_rows
from landbridge.sizes.size import expected_size
from landbridge.targets.machine import LINE_BYTES

#: Rows in a task below which a copy takes longer than it saves.
FEWEST_ROWS = 112
#: Bytes of a copy at most, on the stack of a thread.
_MOST_BYTES = 1 << 19
#: Sets of a second cache: of Skylake-X, Ice Lake, Zen 2 and Zen 3; later ones have more.
_SETS = 1024
#: The share of its places in these sets that L2 keeps columns in, while rows go through it: of products
#: of 512x512 they are in 0.8 of them, and copies are no faster there with Ice Lake.
_RETAINED = 0.9
#: Vectors beside each other that columns are judged by.
_WIDTH = 2


def strided_columns(
    nest: Nest, lane: int | None, lanes: int, rows: int | None, l1_columns: int, l2_bytes: int
) -> list[ElementAccess]:
    """The reads of the reduction whose vectors all rows share, that lie apart, and that tasks copy.

    ``l1_columns``: the columns that L1 keeps; ``l2_bytes``: of the next one, 0 where it is not known.
    """
    main = nest.reduction
    inner = [d for d, dim in enumerate(nest.dims) if dim.reduction]
    if main is None or not inner or lane is None or rows is None or nest.is_scan or not l2_bytes:
        return []
    if not all(isinstance(nest.dims[d].extent, int) for d in (*inner, lane)):
        return []
    if expected_size(nest.dims[rows].extent) < FEWEST_ROWS:
        return []
    reads = (r for r in main.reads if isinstance(r, ElementAccess))
    shared = [r for r in reads if not r.varies(rows) and _can_be_copied(r, lane, inner)]
    iterations = math.prod(nest.dims[d].extent for d in inner)
    found = [
        r
        for r in shared
        if lies_along_sums(r, lane, inner)
        or _lies_badly(r.index.coeff(inner[-1]) * r.item_bytes, lanes * r.item_bytes, iterations, l1_columns, l2_bytes)
    ]
    return found if most_copied(nest, found, lanes, l2_bytes) >= _WIDTH else []


def most_copied(nest: Nest, strided: Sequence[ElementAccess], lanes: int, l2_bytes: int) -> int:
    """How many vectors beside each other there is room for in a copy."""
    iterations = math.prod(dim.extent for dim in nest.dims if dim.reduction)
    column = iterations * lanes * sum(r.item_bytes for r in strided)
    return min(_MOST_BYTES, l2_bytes // 2) // max(column, 1)


def _can_be_copied(r: ElementAccess, lane: int, inner: Sequence[int]) -> bool:
    if in_rows(r.buffer.type) or is_image(r.buffer.type) or r.index.rest or r.guards:
        return False
    copied = walk_of(r, lane) is Walk.ALONG or lies_along_sums(r, lane, inner)
    return copied and all(r.uses(d) for d in inner)


def _lies_badly(step: object, vector: int, iterations: int, l1_columns: int, l2_bytes: int) -> bool:
    """Whether ``iterations`` vectors of ``vector`` bytes, ``step`` bytes apart, are not kept by a cache of
    ``l2_bytes``, or come from there and are of more lines than they need."""
    if not isinstance(step, int) or step <= 2 * _WIDTH * vector:
        return False
    if step % LINE_BYTES:
        return l1_columns < _WIDTH
    width = _WIDTH * vector
    sets = min(_SETS, -(-width // LINE_BYTES) * (_SETS // math.gcd(step // LINE_BYTES, _SETS)))
    return iterations * width > _RETAINED * l2_bytes * sets / _SETS
