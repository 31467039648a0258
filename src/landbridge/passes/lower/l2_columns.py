"""Whether the columns of a product come from a cache that cores share, and how often they do."""

from __future__ import annotations

import math

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.nest import Nest
from landbridge.sizes.size import expected_size


def beyond_l2_share(nest: Nest, lane: int | None, rows: int | None, l2_bytes: int) -> float:
    """Of the times that all ``rows`` pass by a column of ``nest``, the share in which it comes from beyond L2.

    A core's own caches, of ``l2_bytes``, do not keep more than that from one run to the next; what loops around the
    rows read again comes from there but the first time.
    """
    main = nest.reduction
    if main is None or lane is None or rows is None:
        return 0.0
    share = 0.0
    for r in main.reads:
        if isinstance(r, ElementAccess) and r.uses(lane) and not r.uses(rows):
            read = [expected_size(dim.extent) for d, dim in enumerate(nest.dims) if r.uses(d)]
            if math.prod(read) * r.item_bytes > l2_bytes:
                free = (d for d, dim in enumerate(nest.dims) if d not in (lane, rows) and not dim.reduction)
                share = max(
                    share, 1 / max(1, math.prod(expected_size(nest.dims[d].extent) for d in free if not r.uses(d)))
                )
    return share
