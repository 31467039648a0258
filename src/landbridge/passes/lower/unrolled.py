"""How many iterations of a long sum's last loop follow each other in its body.

Instructions that count iterations take the place of others: where two threads share a core, each has half of the 5 that
begin in a cycle of Ice Lake, and 24 multiply-adds with what they load are 41 in 12 cycles.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.between_lanes import iterations_between
from landbridge.passes.lower.combiners import combiner
from landbridge.passes.lower.lane_body import computes_places
from landbridge.passes.lower.nest import Nest

#: Iterations of a long loop that follow each other in its body, and how many iterations make it long: loops over 16
#: channels of a convolution are as fast without, or faster.
_UNROLLED, _MANY_ITERATIONS = 4, 64
#: Rows of a tile that multiply long enough for the instructions between to count.
_ENOUGH_ROWS = 4


def unrolled(nest: Nest, lane: int | None, inner: Sequence[int], row_tile: int) -> int:
    """The iterations of the last of the loops ``inner`` that are in its body, where there are many: few rows wait for
    memory, unless iterations read the same."""
    main = nest.reduction
    if main is None or not inner:
        return 1
    between = iterations_between(main, lane, inner[-1])
    if row_tile < _ENOUGH_ROWS and between == 1:
        return 1
    if combiner(main) is None or len(main.writes) != 1 or computes_places(main):
        return 1  # a body that computes indices knows those of one iteration
    last = inner[-1]
    guards = [g for r in main.reads if isinstance(r, ElementAccess) for g in r.guards]
    if any(g.index.uses(last) for g in guards) or any(last in (b.outer, b.inner) for b in nest.bounds):
        return 1
    iterations = nest.dims[last].extent
    return _UNROLLED // between * between if isinstance(iterations, int) and iterations >= _MANY_ITERATIONS else 1
