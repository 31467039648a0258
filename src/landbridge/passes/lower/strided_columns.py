"""Chooses the columns of a product that tasks copy first because their vectors are strided in memory.

Each tile of rows reads the columns of its task from first to last. If the vectors of consecutive iterations are one
memory row apart, they may map to few sets of L2, which then does not hold them until the next tile: 1024 rows of 4 KiB
map to 32 of 1024 sets. If rows are not a multiple of the cache line, each vector touches two lines. Therefore tasks
with enough rows copy such columns (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008,
section 4.2.3). Results do not change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.cost import COLUMN_COPIES
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_choice import lies_along_sums
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_memory import in_rows
from landbridge.sizes.size import expected_size
from landbridge.targets.machine import LINE_BYTES


def strided_columns(
    nest: Nest, lane: int | None, lanes: int, m_dim: int | None, l1_columns: int, l2_bytes: int, l2_sets: int
) -> list[ElementAccess]:
    """Returns the reads of the reduction that tasks copy: all rows share their vectors, which are strided in memory.

    ``l1_columns``: the number of columns that stay in L1; ``l2_bytes``: the size of L2, 0 if unknown;
    ``l2_sets``: the number of its sets.
    """
    main = nest.reduction
    inner = [d for d, dim in enumerate(nest.dims) if dim.reduction]
    if main is None or not inner or lane is None or m_dim is None or nest.is_scan or not l2_bytes:
        return []
    if not all(isinstance(nest.dims[d].extent, int) for d in (*inner, lane)):
        return []
    if expected_size(nest.dims[m_dim].extent) < COLUMN_COPIES.rows:
        return []
    reads = (r for r in main.reads if isinstance(r, ElementAccess))
    shared = [r for r in reads if not r.varies(m_dim) and _can_be_copied(r, lane, inner)]
    iterations = math.prod(nest.dims[d].extent for d in inner)

    def lies_badly(r: ElementAccess) -> bool:
        step, vector = r.index.coeff(inner[-1]) * r.item_bytes, lanes * r.item_bytes
        return _lies_badly(step, vector, iterations, l1_columns, l2_bytes, l2_sets)

    found = [r for r in shared if lies_along_sums(r, lane, inner) or lies_badly(r)]
    return found if most_copied(nest, found, lanes, l2_bytes) >= COLUMN_COPIES.adjacent_vectors else []


def most_copied(nest: Nest, strided: Sequence[ElementAccess], lanes: int, l2_bytes: int) -> int:
    """Returns how many adjacent column vectors fit a copy."""
    iterations = math.prod(dim.extent for dim in nest.dims if dim.reduction)
    column = iterations * lanes * sum(r.item_bytes for r in strided)
    return min(COLUMN_COPIES.nbytes, l2_bytes // 2) // max(column, 1)


def _can_be_copied(r: ElementAccess, lane: int, inner: Sequence[int]) -> bool:
    if in_rows(r.buffer.type) or is_image(r.buffer.type) or r.index.rest or r.guards:
        return False
    copied = walk_of(r, lane) is Walk.ALONG or lies_along_sums(r, lane, inner)
    return copied and all(r.uses(d) for d in inner)


def _lies_badly(step: object, vector: int, iterations: int, l1_columns: int, l2_bytes: int, l2_sets: int) -> bool:
    """Returns whether ``iterations`` vectors of ``vector`` bytes, ``step`` bytes apart, do not stay in an L2 of
    ``l2_bytes`` with ``l2_sets``.

    Also true if they come from L2 and touch more cache lines than necessary.
    """
    if not isinstance(step, int) or step <= 2 * COLUMN_COPIES.adjacent_vectors * vector:
        return False
    if step % LINE_BYTES:
        return l1_columns < COLUMN_COPIES.adjacent_vectors
    width = COLUMN_COPIES.adjacent_vectors * vector
    sets = min(l2_sets, -(-width // LINE_BYTES) * (l2_sets // math.gcd(step // LINE_BYTES, l2_sets)))
    return iterations * width > COLUMN_COPIES.share_of_l2 * l2_bytes * sets / l2_sets
