"""Computes how many columns of a product stay in L1 from one tile of rows to the next."""

from __future__ import annotations

import math
from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.nest import Nest
from landbridge.sizes.size import expected_size

#: More columns than any nest has.
MANY = 1 << 30


def l1_columns(nest: Nest, lane: int | None, lanes: int, inner: Sequence[int], l1_bytes: int) -> int:
    """Returns the number of columns whose vectors, over the reduction loops ``inner``, take at most ``l1_bytes``.

    Every tile of rows reads its columns from first to last. Columns that do not fit come from L2 for every tile.
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
