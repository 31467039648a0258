"""Chooses how many iterations of a reduction loop are unrolled together because they can share loads.

This is for targets whose arithmetic takes no operand from memory. Either one vector holds the scalars of several
iterations, and each multiply-add takes a lane of it (one instruction of NEON; ``number_window.py`` does this for
windows); or the vectors of overlapping windows are loaded once.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.combiners import sums_up
from landbridge.passes.lower.cost import SHARED_WINDOWS
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_body import computes_indices
from landbridge.passes.lower.nest import Nest, Stage, widest_bytes
from landbridge.passes.lower.row_memory import in_rows
from landbridge.sizes.size import Extent, at_least


def grouped_iterations(nest: Nest, lane: int | None, m_dim: int | None, inner: Sequence[int], vector_bytes: int) -> int:
    """Returns how many iterations of the last of the reduction loops ``inner`` are unrolled; 1 if that gains nothing.

    It is the number of scalars in a vector, or the width of a window.
    """
    main = nest.reduction
    if main is None or lane is None or not inner or not sums_up(main) or computes_indices(main):
        return 1  # a body that computes indices has them for one iteration only
    last = inner[-1]
    if any(b.outer == last for b in nest.bounds):
        return 1
    extent = nest.dims[last].extent
    partial = any(b.inner == last and b.extent % b.tile for b in nest.bounds)  # the last tile has fewer iterations
    if not partial and window_of(main, lane, m_dim, last, extent) is not None:
        assert isinstance(extent, int)
        return extent
    reads = [r for r in main.reads if isinstance(r, ElementAccess)]
    if any(g.index.uses(last) for r in reads for g in r.guards):
        return 1
    if not any(is_shared(r, lane, last) and r.element == main.writes[0].element for r in reads):
        return 1
    iterations = vector_bytes // widest_bytes(main.body)
    if partial and not all(b.outer in inner for b in nest.bounds if b.inner == last):
        return 1
    return iterations if at_least(extent, iterations) is True else 1


def is_shared(a: ElementAccess, lane: int | None, last: int) -> bool:
    """Returns whether ``a`` reads one scalar for all lanes, and contiguous scalars in the iterations of loop
    ``last``.
    """
    if lane is None or a.varies(lane) or a.index.coeff(last) != 1 or a.index.nonlinear_in(last):
        return False
    return not in_rows(a.buffer.type) and not is_image(a.buffer.type)


def window_of(main: Stage, lane: int, m_dim: int | None, last: int, extent: Extent) -> tuple[int, int] | None:
    """Returns the steps in memory of an iteration of loop ``last`` and of a row, if rows share vectors; else None.

    All reads of ``main`` must be vectors, and those of one row in loop ``last`` must overlap those of other rows.
    """
    reads = [r for r in main.reads if isinstance(r, ElementAccess)]
    if m_dim is None or not isinstance(extent, int) or not 1 < extent <= SHARED_WINDOWS.iterations:
        return None
    if not all(r.index.coeff(lane) for r in reads) or any(r.index.nonlinear_in(last) for r in reads):
        return None
    for r in reads:
        step, stride = r.index.coeff(last), r.index.coeff(m_dim)
        if isinstance(step, int) and isinstance(stride, int) and 0 < step <= stride < step * extent:
            return (step, stride) if stride % step == 0 else None
    return None
