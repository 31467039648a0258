"""Iterations of a reduction loop written out beside each other, where arithmetic takes nothing from memory.

Two things are then loaded once for several multiply-adds: numbers that all lanes of a product share, as a vector whose
lanes multiply (NEON has that in one instruction; those of windows are in ``number_window.py``), and vectors of windows
that overlap.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.combiners import sums_up
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_body import computes_places
from landbridge.passes.lower.nest import Nest, Stage, widest_bytes
from landbridge.passes.lower.row_memory import in_rows
from landbridge.sizes.size import Extent, at_least

#: The widest window whose iterations are written out.
WIDEST_WINDOW = 7


def grouped_iterations(nest: Nest, lane: int | None, rows: int | None, inner: Sequence[int], vector_bytes: int) -> int:
    """How many iterations of the last of the reduction loops ``inner`` are written out: a vector of shared numbers, or
    a window; 1 where nothing is gained."""
    main = nest.reduction
    if main is None or lane is None or not inner or not sums_up(main) or computes_places(main):
        return 1  # a body that computes indices knows those of one iteration
    last = inner[-1]
    if any(b.outer == last for b in nest.bounds):
        return 1
    extent = nest.dims[last].extent
    partial = any(
        b.inner == last and b.extent % b.tile for b in nest.bounds
    )  # of the last tile fewer iterations are there
    if not partial and window_of(main, lane, rows, last, extent) is not None:
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
    """Whether ``a`` reads one number for all lanes, and those of the iterations of loop ``last`` from side by side."""
    if lane is None or a.varies(lane) or a.index.coeff(last) != 1 or a.index.nonlinear_in(last):
        return False
    return not in_rows(a.buffer.type) and not is_image(a.buffer.type)


def window_of(main: Stage, lane: int, rows: int | None, last: int, extent: Extent) -> tuple[int, int] | None:
    """By how much an iteration of loop ``last`` and a row go on in memory, where all that ``main`` reads are vectors,
    and those of one row in loop ``last`` are those of others."""
    reads = [r for r in main.reads if isinstance(r, ElementAccess)]
    if rows is None or not isinstance(extent, int) or not 1 < extent <= WIDEST_WINDOW:
        return None
    if not all(r.index.coeff(lane) for r in reads) or any(r.index.nonlinear_in(last) for r in reads):
        return None
    for r in reads:
        step, stride = r.index.coeff(last), r.index.coeff(rows)
        if isinstance(step, int) and isinstance(stride, int) and 0 < step <= stride < step * extent:
            return (step, stride) if stride % step == 0 else None
    return None
