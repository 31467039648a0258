"""The schedule of one point at a time."""

from __future__ import annotations

import math
from collections.abc import Collection

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.operands import Tile
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule
from landbridge.sizes.size import expected_size

#: The only tile of such a schedule.
ONE = Tile(0, 1, 0, 1)


def serial(nest: Nest, bound: Collection[int] = ()) -> Schedule:
    """One point at a time: no lanes, no register block. Dims ``bound`` are those of loops around it.

    The outer loops end with the one that walks the result contiguously: neighbours write side by side.
    """
    free = [d for d in range(len(nest.dims)) if d not in bound]
    parallel = by_stride([d for d in free if not nest.dims[d].reduction], nest.stages[-1].writes[0])
    reductions = tuple(d for d in free if nest.dims[d].reduction)
    one = (Run(0, 1, 1),)
    return Schedule(None, 1, False, None, one, None, one, parallel, reductions, 1)


def by_stride(dims: Collection[int], access: ElementAccess) -> tuple[int, ...]:
    """``dims`` from the one that takes the longest strides through ``access``; those it does not use come first."""
    return tuple(sorted(dims, key=lambda d: -abs(expected_size(access.index.coeff(d))) or -math.inf))
