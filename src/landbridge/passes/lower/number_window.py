"""Windows of scalars that overlap along the rows of a tile: each is loaded as vectors, once for all rows and
iterations.

All lanes share a scalar. Such windows occur in a first convolution, whose input channels are not lanes, and in
one-dimensional convolutions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.combiners import sums_up
from landbridge.passes.lower.cost import SHARED_WINDOWS
from landbridge.passes.lower.grouped_iterations import is_shared
from landbridge.passes.lower.lane_body import computes_indices
from landbridge.passes.lower.nest import Nest, widest_bytes
from landbridge.records import record


@record(frozen=True)
class NumberWindow:
    """A window of ``iterations`` contiguous scalars, which moves by ``stride`` scalars from row to row.

    The scalar of a row in an iteration is element ``row * stride + iteration``. Vectors of ``lanes`` load several at
    once.
    """

    stride: int
    iterations: int
    lanes: int

    def vectors(self, m_size: int) -> int:
        """Returns the number of vectors that hold all scalars of ``m_size`` rows."""
        return -(-(self.stride * (m_size - 1) + self.iterations) // self.lanes)

    def loads(self, m_size: int, n_size: int) -> float:
        """Returns the average number of vectors that one iteration of a tile loads."""
        return self.vectors(m_size) / self.iterations + n_size

    def by_location(self, m_size: int, n_size: int) -> bool:
        """Returns whether going through the window in the order of memory takes fewer registers than going by
        iteration.

        In the order of memory, the column vectors of all iterations stay in registers; by iteration, the whole window
        does.
        """
        return self.iterations * n_size + 2 < self.vectors(m_size) + n_size + 1

    def extra_registers(self, m_size: int, n_size: int) -> int:
        """Returns the registers that a tile needs in addition to its accumulators."""
        return self.iterations * n_size + 2 if self.by_location(m_size, n_size) else self.vectors(m_size) + n_size + 1

    def piece(self, at: int, places: range) -> range:
        """Returns the elements that one vector loads together with element ``at``; all of them are in ``places``."""
        if len(places) < self.lanes:
            return range(at, at + 1)
        first = places.start + (at - places.start) // self.lanes * self.lanes
        first = min(first, places.stop - self.lanes)
        return range(first, first + self.lanes)

    def places(self, read: Collection[tuple[int, int]]) -> range:
        """Returns the range of the elements that are ``read``, given as pairs of row and iteration."""
        at = [row * self.stride + iteration for row, iteration in read]
        return range(min(at), max(at) + 1)


def number_window(
    nest: Nest, lane: int | None, m_dim: int | None, inner: Sequence[int], vector_bytes: int
) -> NumberWindow | None:
    """Returns the window of scalars that rows of a tile share in the last of the reduction loops ``inner``; None if
    there is none.

    Everything else that is read there must be the same for all rows.
    """
    main = nest.reduction
    if main is None or lane is None or m_dim is None or not inner or not sums_up(main) or computes_indices(main):
        return None
    last = inner[-1]
    iterations, reads = nest.dims[last].extent, [r for r in main.reads if isinstance(r, ElementAccess)]
    shared = [r for r in reads if is_shared(r, lane, last)]
    if (
        not isinstance(iterations, int)
        or not 1 < iterations <= SHARED_WINDOWS.iterations
        or len(shared) != 1
        or len(main.writes) != 1
    ):
        return None
    (read,) = shared
    others = [r for r in reads if r is not read]
    if read.element != main.writes[0].element or any(r.varies(m_dim) or r.index.nonlinear_in(last) for r in others):
        return None
    if any(last in (b.inner, b.outer) for b in nest.bounds):
        return None
    along = [x for x in (read.index, *(g.index for g in read.guards)) if x.uses(m_dim) or x.uses(last)]
    stride = read.index.coeff(m_dim)
    if (
        not isinstance(stride, int)
        or not 0 < stride < iterations
        or any(x.nonlinear_in(d) for x in along for d in (m_dim, last))
    ):
        return None
    if any(x.coeff(m_dim) != stride * x.coeff(last) for x in along):
        return None
    return NumberWindow(stride, iterations, vector_bytes // widest_bytes(main.body))
