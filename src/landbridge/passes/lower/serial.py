"""The schedule that computes one point at a time."""

from __future__ import annotations

import math
from collections.abc import Collection

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.operands import Tile
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule
from landbridge.sizes.size import expected_size

#: The tile of such a schedule.
ONE = Tile(0, 1, 0, 1)


def serial(nest: Nest, bound: Collection[int] = ()) -> Schedule:
    """Returns the schedule of one point at a time, without lanes or tiles. Dims ``bound`` are loops around it.

    The last outer loop is the one along which the result is contiguous, so that consecutive points are neighbours.
    """
    free = [d for d in range(len(nest.dims)) if d not in bound]
    parallel = by_stride([d for d in free if not nest.dims[d].reduction], nest.stages[-1].writes[0])
    reductions = tuple(d for d in free if nest.dims[d].reduction)
    one = (Run(0, 1, 1),)
    return Schedule(None, 1, False, None, one, None, one, parallel, reductions, 1)


def by_stride(dims: Collection[int], access: ElementAccess) -> tuple[int, ...]:
    """Returns ``dims`` by descending stride in ``access``; those that it does not use come first."""
    return tuple(sorted(dims, key=lambda d: -abs(expected_size(access.index.coeff(d))) or -math.inf))
