"""How a long sum is cut into blocks that are summed on their own.

The error of one chain of additions grows with its length, that of a sum of short chains hardly does (Higham, "The
accuracy of floating point summation", 1993). The cut follows from the nest and its schedule alone, never from the tile,
so that equal terms give equal sums everywhere in the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.combiners import sums_up
from landbridge.passes.lower.nest import Nest, Stage
from landbridge.passes.lower.padding import Padding
from landbridge.passes.lower.schedule import Schedule
from landbridge.sizes.size import Extent, Size, at_least, expected_size

#: Terms that one accumulator takes at most; longer sums are added up in blocks.
BLOCK = 256
#: Terms of a block at most where a register tile is reduced. Blocks are of equal length, so that few of them do: each
#: costs a read, an addition and a write of every accumulator. onnxruntime's chains are of 48 to 144 terms in most
#: convolutions and of 128 in products; error grows with the root of that, so ours stays below twice its own.
PART = 192
#: Both where each term is one number of memory: reading it takes longer than adding it, and shorter chains are free.
#: Variances that models compute as E[x^2] - E[x]^2 lose what such sums are off by.
PLAIN_BLOCK = 32


def block_of_sums(
    nest: Nest, sched: Schedule, padding: Padding, lows: Mapping[int, Extent] = MappingProxyType({})
) -> tuple[int | None, int]:
    """The loop of ``nest`` whose blocks are summed on their own, if its sums are long, and the iterations of a
    block."""
    if nest.reduction is None or not sums_up(nest.reduction):
        return None, 0
    lane = sched.lane if sched.horizontal else None
    dims = [*(d for d in sched.inner if d != lane), *(d for d in sched.inner if d == lane)]
    block, part = longest_block(nest.reduction, sched.inner)
    iterations = {d: _iterations(nest.dims[d].extent - lows.get(d, 0), block) for d in dims}
    if dims:
        iterations[dims[-1]] //= (sched.lanes if dims[-1] == lane else 1) * sched.copies
    below = 1
    for d in reversed(dims):
        if not padding.at_edges(d) and below * iterations[d] > part and math.prod(iterations.values()) > block:
            return d, _equal_part(iterations[d], max(1, part // below))
        below *= iterations[d]
    return None, 0


def longest_block(main: Stage, inner: Sequence[int]) -> tuple[int, int]:
    """Terms of the sum ``main`` over the loops ``inner`` that are added up in one block, and those of a block, at
    most."""
    streams = sum(1 for r in main.reads if isinstance(r, ElementAccess) and any(r.uses(d) for d in inner))
    return (BLOCK, PART) if streams > 1 else (PLAIN_BLOCK, PLAIN_BLOCK)


def _equal_part(iterations: int, most: int) -> int:
    """The iterations of a part where ``iterations`` are cut into as few parts of at most ``most`` as there can be."""
    return -(-iterations // -(-iterations // most))


def may_pass(extent: Extent, most: int) -> bool:
    """Whether there may be more than ``most`` iterations."""
    return not at_least(most, extent)


def _iterations(extent: Extent, block: int) -> int:
    """The iterations of a loop that chains of additions are to be short for: of an open one many, if there may be
    many."""
    if isinstance(extent, Size) and may_pass(extent, block):
        return max(expected_size(extent), 4 * block)
    return expected_size(extent)
