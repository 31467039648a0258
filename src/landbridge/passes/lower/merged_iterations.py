"""Which loops of a reduction are one loop wherever nothing between their iterations is left out."""

from __future__ import annotations

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.nest import Nest


def walks_as_one(nest: Nest, outer: int, inner: int) -> bool:
    """Whether an iteration of reduction loop ``outer`` goes as far as all iterations of ``inner`` in every read.

    Iteration ``i`` of one and ``j`` of the other then are iteration ``i * extent + j`` of ``inner`` alone. Guards on
    ``outer`` are the caller's concern.
    """
    main = nest.reduction
    if main is None or nest.loaded() or any({outer, inner} & {b.outer, b.inner} for b in nest.bounds):
        return False
    reads, extent = [r for r in main.reads if isinstance(r, ElementAccess)], nest.dims[inner].extent
    return all(
        r.index.coeff(outer) == r.index.coeff(inner) * extent
        and not r.index.nonlinear_in(outer)
        and not r.index.nonlinear_in(inner)
        and not any(g.index.uses(inner) for g in r.guards)
        for r in reads
    )
