"""Cuts long sums into blocks, which are summed separately.

The error of one chain of additions grows with its length; that of a sum of short chains hardly does (Higham, "The
accuracy of floating point summation", 1993). The cut depends on the nest and its schedule, never on the tile, so that
equal terms give equal sums everywhere in the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.combiners import sums_up
from landbridge.passes.lower.cost import SUM_ORDER
from landbridge.passes.lower.nest import Nest, Stage
from landbridge.passes.lower.peeling import Peeling
from landbridge.passes.lower.schedule import Schedule
from landbridge.sizes.size import Extent, Size, at_least, expected_size


def block_of_sums(
    nest: Nest, sched: Schedule, peeling: Peeling, lows: Mapping[int, Extent] = MappingProxyType({})
) -> tuple[int | None, int]:
    """Returns the loop of ``nest`` that is cut into blocks and the iterations of a block; None and 0 if its sums are
    short.
    """
    if nest.reduction is None or not sums_up(nest.reduction):
        return None, 0
    lane = sched.lane if sched.horizontal else None
    dims = [*(d for d in sched.inner if d != lane), *(d for d in sched.inner if d == lane)]
    block, part = longest_block(nest.reduction, sched.inner)
    extents = {d: nest.dims[d].extent - lows.get(d, 0) for d in dims}
    if dims:
        extents[dims[-1]] //= (sched.lanes if dims[-1] == lane else 1) * sched.partial_sums
    iterations = {d: _iterations(extent, block) for d, extent in extents.items()}
    below = 1
    for d in reversed(dims):
        if not peeling.guards_of(d) and below * iterations[d] > part and math.prod(iterations.values()) > block:
            return d, _equal_part(iterations[d], max(1, part // below))
        below *= iterations[d]
    return None, 0


def longest_block(main: Stage, inner: Sequence[int]) -> tuple[int, int]:
    """Returns the most terms of the sum ``main`` that need no blocks, and the most terms of a block."""
    streams = sum(1 for r in main.reads if isinstance(r, ElementAccess) and any(r.uses(d) for d in inner))
    if streams > 1:
        return SUM_ORDER.chain_terms, SUM_ORDER.block_terms
    return SUM_ORDER.plain_terms, SUM_ORDER.plain_terms


def _equal_part(iterations: int, most: int) -> int:
    """Returns the length of equal parts if ``iterations`` are cut into the fewest parts of at most ``most``."""
    return -(-iterations // -(-iterations // most))


def may_pass(extent: Extent, most: int) -> bool:
    """Returns whether there may be more than ``most`` iterations."""
    return not at_least(most, extent)


def _iterations(extent: Extent, block: int) -> int:
    """Returns the iterations of a loop for which the length of chains is chosen; many for an open extent that may be
    long.
    """
    if isinstance(extent, Size) and may_pass(extent, block):
        return max(expected_size(extent), 4 * block)
    return expected_size(extent)
