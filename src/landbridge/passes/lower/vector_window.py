"""Windows of vectors that overlap along the rows of a tile, in nests that multiply all lanes by one scalar.

These are convolutions to few channels, whose lanes lie along the pixels of a line and whose rows are lines. A line is
loaded once for all rows and iterations that read it. Without that, each multiplication has an unaligned memory operand,
which often touches two cache lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess, Linear
from landbridge.passes.lower.combiners import combiner
from landbridge.passes.lower.cost import SHARED_WINDOWS
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_body import computes_indices
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_memory import in_rows
from landbridge.records import record


@record(frozen=True)
class VectorWindow:
    """The ``iterations`` of reduction loop ``dim`` in which rows of a tile read the same vectors.

    A row reads vector ``row * stride + iteration`` in an iteration.
    """

    dim: int
    iterations: int
    stride: int

    def vectors(self, m_size: int) -> int:
        """Returns the vectors per column that ``m_size`` rows read."""
        return self.stride * (m_size - 1) + self.iterations

    def loads(self, m_size: int, n_size: int) -> float:
        """Returns the average number of vectors and scalars that an iteration of a tile loads."""
        return self.vectors(m_size) * n_size / self.iterations + 1

    def extra_registers(self, m_size: int, n_size: int) -> int:
        """Returns the registers that a tile needs in addition to its accumulators: one scalar per iteration, and the
        vectors of one location.
        """
        return self.iterations + n_size


def vector_window(nest: Nest, lane: int | None, m_dim: int | None, inner: Sequence[int]) -> VectorWindow | None:
    """Returns the window that rows of a tile of ``nest`` share in one of the reduction loops ``inner``; None if there
    is none.

    Everything else that is read there must be one scalar for all lanes and rows.
    """
    main = nest.reduction
    if main is None or lane is None or m_dim is None or m_dim == lane or lane in inner or nest.is_scan:
        return None
    if combiner(main) is None or len(main.writes) != 1 or computes_indices(main):
        return None
    extent, reads = nest.dims[m_dim].extent, [r for r in main.reads if isinstance(r, ElementAccess)]
    moving = [r for r in reads if r.varies(m_dim)]
    if len(reads) < 2 or not moving or (isinstance(extent, int) and extent <= SHARED_WINDOWS.few_rows):
        return None
    if any(r.varies(lane) for r in reads if r not in moving) or any(in_rows(r.buffer.type) for r in moving):
        return None
    if any(is_image(r.buffer.type) or not r.uses(lane) for r in moving):
        return None
    for d in inner:
        iterations = nest.dims[d].extent
        if (
            not isinstance(iterations, int)
            or not 1 < iterations <= SHARED_WINDOWS.iterations
            or any(d in (b.inner, b.outer) for b in nest.bounds)
        ):
            continue
        strides = {
            _stride(x, m_dim, d) for r in moving for x in (r.index, *(g.index for g in r.guards)) if _moves(x, m_dim, d)
        }
        stride = next(iter(strides))
        if len(strides) == 1 and stride is not None and stride < iterations:
            return VectorWindow(d, iterations, stride)
    return None


def _moves(x: Linear, m_dim: int, d: int) -> bool:
    return x.uses(m_dim) or x.uses(d)


def _stride(x: Linear, m_dim: int, d: int) -> int | None:
    """Returns how many iterations of loop ``d`` advance ``x`` as far as one row; None if it is not a whole number."""
    step, iteration = x.coeff(m_dim), x.coeff(d)
    if x.nonlinear_in(m_dim) or x.nonlinear_in(d) or not isinstance(step, int) or not isinstance(iteration, int):
        return None
    return step // iteration if iteration > 0 and step > 0 and step % iteration == 0 else None
