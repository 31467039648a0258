"""Vectors of windows that overlap along the rows of a tile, where all lanes multiply by one number: convolutions to few
channels, whose lanes lie along the pixels of a line and whose rows are lines.

A line is then loaded once for all rows and iterations that read it. Without that each multiplication takes a vector
from memory that begins anywhere in its cache lines, two of which a load then reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess, Linear
from landbridge.passes.lower.combiners import combiner
from landbridge.passes.lower.grouped_iterations import WIDEST_WINDOW
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_body import computes_places
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_memory import in_rows
from landbridge.records import record

#: Rows that are too few to hide how long additions take, so that partial sums do.
_FEW_ROWS = 4


@record(frozen=True)
class VectorWindow:
    """The ``iterations`` of reduction loop ``dim``, for which rows of a tile read the same vectors: a row in an
    iteration that at ``row * stride + iteration``."""

    dim: int
    iterations: int
    stride: int

    def vectors(self, rows: int) -> int:
        """Vectors of a column that ``rows`` rows read."""
        return self.stride * (rows - 1) + self.iterations

    def loads(self, rows: int, columns: int) -> float:
        """Vectors that an iteration of a tile loads, and its number."""
        return self.vectors(rows) * columns / self.iterations + 1

    def extra_registers(self, rows: int, columns: int) -> int:
        """The registers that a tile takes beside its accumulators: a number an iteration, and the vectors of one
        place."""
        return self.iterations + columns


def vector_window(nest: Nest, lane: int | None, rows: int | None, inner: Sequence[int]) -> VectorWindow | None:
    """The window that rows of a tile of ``nest`` share in one of the reduction loops ``inner``; all else that is read
    there is one number for all lanes and rows."""
    main = nest.reduction
    if main is None or lane is None or rows is None or rows == lane or lane in inner or nest.is_scan:
        return None
    if combiner(main) is None or len(main.writes) != 1 or computes_places(main):
        return None
    extent, reads = nest.dims[rows].extent, [r for r in main.reads if isinstance(r, ElementAccess)]
    moving = [r for r in reads if r.varies(rows)]
    if len(reads) < 2 or not moving or (isinstance(extent, int) and extent <= _FEW_ROWS):
        return None
    if any(r.varies(lane) for r in reads if r not in moving) or any(in_rows(r.buffer.type) for r in moving):
        return None
    if any(is_image(r.buffer.type) or not r.uses(lane) for r in moving):
        return None
    for d in inner:
        iterations = nest.dims[d].extent
        if (
            not isinstance(iterations, int)
            or not 1 < iterations <= WIDEST_WINDOW
            or any(d in (b.inner, b.outer) for b in nest.bounds)
        ):
            continue
        strides = {
            _stride(x, rows, d) for r in moving for x in (r.index, *(g.index for g in r.guards)) if _moves(x, rows, d)
        }
        stride = next(iter(strides))
        if len(strides) == 1 and stride is not None and stride < iterations:
            return VectorWindow(d, iterations, stride)
    return None


def _moves(x: Linear, rows: int, d: int) -> bool:
    return x.uses(rows) or x.uses(d)


def _stride(x: Linear, rows: int, d: int) -> int | None:
    """The iterations of loop ``d`` that a row goes on by; None where it is no number of them."""
    step, iteration = x.coeff(rows), x.coeff(d)
    if x.nonlinear_in(rows) or x.nonlinear_in(d) or not isinstance(step, int) or not isinstance(iteration, int):
        return None
    return step // iteration if iteration > 0 and step > 0 and step % iteration == 0 else None
