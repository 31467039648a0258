"""Chooses how many iterations of the last loop of a long sum are unrolled.

Instructions that control the loop take issue slots. If two threads share a core, each has half of the 5 slots per cycle
of Ice Lake; 24 multiply-adds and their loads are 41 instructions in 12 cycles.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.between_lanes import iterations_between
from landbridge.passes.lower.combiners import combiner
from landbridge.passes.lower.lane_body import computes_indices
from landbridge.passes.lower.nest import Nest

#: The unrolled iterations of a long loop, and how many iterations make it long. Loops over 16 channels of a convolution
#: are as fast without unrolling, or faster.
_UNROLLED, _MANY_ITERATIONS = 4, 64
#: The fewest rows of a tile for which unrolling pays.
_ENOUGH_ROWS = 4


def unrolled(nest: Nest, lane: int | None, inner: Sequence[int], m_tile: int) -> int:
    """Returns how many iterations of the last of the loops ``inner`` are unrolled; 1 for short loops.

    Tiles with few rows wait for memory anyway, and are unrolled only if iterations read the same vectors.
    """
    main = nest.reduction
    if main is None or not inner:
        return 1
    between = iterations_between(main, lane, inner[-1])
    if m_tile < _ENOUGH_ROWS and between == 1:
        return 1
    if combiner(main) is None or len(main.writes) != 1 or computes_indices(main):
        return 1  # a body that computes indices has them for one iteration only
    last = inner[-1]
    guards = [g for r in main.reads if isinstance(r, ElementAccess) for g in r.guards]
    if any(g.index.uses(last) for g in guards) or any(last in (b.outer, b.inner) for b in nest.bounds):
        return 1
    iterations = nest.dims[last].extent
    return _UNROLLED // between * between if isinstance(iterations, int) and iterations >= _MANY_ITERATIONS else 1
