"""Numbers that all lanes share, of windows that overlap along the rows: a first convolution's, whose channels are no
lanes, and one-dimensional ones'. They are loaded as vectors, each for all rows and iterations that read a part of
it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.combiners import sums_up
from landbridge.passes.lower.grouped_iterations import WIDEST_WINDOW, is_shared
from landbridge.passes.lower.lane_body import computes_places
from landbridge.passes.lower.nest import Nest, widest_bytes
from landbridge.records import record


@record(frozen=True)
class NumberWindow:
    """A window of ``iterations`` along numbers side by side, by ``stride`` of them further for each row, that are
    loaded as vectors of ``lanes``. The number that a row reads in an iteration is at ``row * stride + iteration``."""

    stride: int
    iterations: int
    lanes: int

    def vectors(self, rows: int) -> int:
        """Vectors that hold what ``rows`` rows read."""
        return -(-(self.stride * (rows - 1) + self.iterations) // self.lanes)

    def loads(self, rows: int, columns: int) -> float:
        """Vectors that an iteration of a tile loads."""
        return self.vectors(rows) / self.iterations + columns

    def by_location(self, rows: int, columns: int) -> bool:
        """Whether fewer registers are taken where a tile is walked as the window lies in memory, with the columns'
        vectors of all iterations in registers, than iteration by iteration with all of the window in them."""
        return self.iterations * columns + 2 < self.vectors(rows) + columns + 1

    def extra_registers(self, rows: int, columns: int) -> int:
        """The registers that a tile takes beside its accumulators."""
        return self.iterations * columns + 2 if self.by_location(rows, columns) else self.vectors(rows) + columns + 1

    def piece(self, at: int, places: range) -> range:
        """The numbers that are loaded together with that at ``at``: of ``places``, and no others."""
        if len(places) < self.lanes:
            return range(at, at + 1)
        first = places.start + (at - places.start) // self.lanes * self.lanes
        first = min(first, places.stop - self.lanes)
        return range(first, first + self.lanes)

    def places(self, read: Collection[tuple[int, int]]) -> range:
        """The numbers from the first to the last that are ``read``, by rows and iterations."""
        at = [row * self.stride + iteration for row, iteration in read]
        return range(min(at), max(at) + 1)


def number_window(
    nest: Nest, lane: int | None, rows: int | None, inner: Sequence[int], vector_bytes: int
) -> NumberWindow | None:
    """The window of numbers that rows of a tile of ``nest`` share in the last of the reduction loops ``inner``;
    all else that is read there is one for all rows."""
    main = nest.reduction
    if main is None or lane is None or rows is None or not inner or not sums_up(main) or computes_places(main):
        return None
    last = inner[-1]
    iterations, reads = nest.dims[last].extent, [r for r in main.reads if isinstance(r, ElementAccess)]
    shared = [r for r in reads if is_shared(r, lane, last)]
    if (
        not isinstance(iterations, int)
        or not 1 < iterations <= WIDEST_WINDOW
        or len(shared) != 1
        or len(main.writes) != 1
    ):
        return None
    (read,) = shared
    others = [r for r in reads if r is not read]
    if read.element != main.writes[0].element or any(r.varies(rows) or r.index.nonlinear_in(last) for r in others):
        return None
    if any(last in (b.inner, b.outer) for b in nest.bounds):
        return None
    along = [x for x in (read.index, *(g.index for g in read.guards)) if x.uses(rows) or x.uses(last)]
    stride = read.index.coeff(rows)
    if (
        not isinstance(stride, int)
        or not 0 < stride < iterations
        or any(x.nonlinear_in(d) for x in along for d in (rows, last))
    ):
        return None
    if any(x.coeff(rows) != stride * x.coeff(last) for x in along):
        return None
    return NumberWindow(stride, iterations, vector_bytes // widest_bytes(main.body))
