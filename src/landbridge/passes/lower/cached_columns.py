"""Computes which columns of a product stay in a cache: how many L1 keeps between tiles of rows, and which come from
beyond L2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from landbridge.ir.types import shape_of
from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.nest import Nest
from landbridge.sizes.size import Size, expected_size, product

#: More columns than any nest has.
MANY = 1 << 30


def l1_columns(nest: Nest, lane: int | None, lanes: int, inner: Sequence[int], l1_bytes: int) -> int:
    """Returns the number of columns that fit in ``l1_bytes`` together; 0 if ``nest`` has no reduction or no ``lane``
    loop.

    A column is one vector of ``lanes`` elements for each iteration of the reduction loops ``inner``, of every operand
    that depends on ``lane``. Open extents count with their expected sizes. Every tile of rows reads its columns from
    first to last; columns that do not fit come from L2 for every tile.
    """
    main = nest.reduction
    if main is None or lane is None:
        return 0
    column = 0
    for r in main.reads:
        if isinstance(r, ElementAccess) and r.uses(lane):
            vectors = math.prod(expected_size(nest.dims[d].extent) for d in inner if r.uses(d))
            column += vectors * lanes * r.item_bytes
    return l1_bytes // max(column, 1)


def beyond_l2_share(nest: Nest, lane: int | None, m_dim: int | None, l2_bytes: int) -> float:
    """Returns the share of passes over all rows, from 0 to 1, in which the columns of ``nest`` come from beyond L2.

    When a run begins, columns that take more than ``l2_bytes``, the size of one core's L2, are not in it. Outer loops
    that read the same columns again find them there.
    """
    main = nest.reduction
    if main is None or lane is None or m_dim is None:
        return 0.0
    share = 0.0
    for r in main.reads:
        if isinstance(r, ElementAccess) and r.uses(lane) and not r.uses(m_dim):
            read = [expected_size(dim.extent) for d, dim in enumerate(nest.dims) if r.uses(d)]
            if math.prod(read) * r.item_bytes > l2_bytes:
                free = (d for d, dim in enumerate(nest.dims) if d not in (lane, m_dim) and not dim.reduction)
                share = max(
                    share, 1 / max(1, math.prod(expected_size(nest.dims[d].extent) for d in free if not r.uses(d)))
                )
    return share


def is_beyond(r: ElementAccess, nbytes: int) -> bool:
    """Returns whether the memory that ``r`` reads takes more than ``nbytes``, or may."""
    count = product(shape_of(r.buffer.type))
    return isinstance(count, Size) or count * r.item_bytes > nbytes
