"""Finds reduction loops that are one loop as long as no iteration between them is left out."""

from __future__ import annotations

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.nest import Nest


def walks_as_one(nest: Nest, outer: int, inner: int) -> bool:
    """Returns whether one iteration of reduction loop ``outer`` advances every read as far as all iterations of
    ``inner``.

    Iterations ``i`` of ``outer`` and ``j`` of ``inner`` are then iteration ``i * extent + j`` of ``inner`` alone. The
    caller checks guards that depend on ``outer``.
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
