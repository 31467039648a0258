"""Chooses the iterations of reduction loops that are unrolled together because their loads have something in common.

A window lies in several iterations of one loop, and moves on from row to row of a tile. Where it moves by less than its
length, rows read the same elements. ``straight_line.py`` finds the common loads of the unrolled code and merges them;
here is decided where that pays.

On targets whose arithmetic takes no operand from memory, the scalars of several iterations are also lanes of one
vector, and each multiply-add takes one of them (one instruction of NEON).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from landbridge.passes.lower.access import ElementAccess, Linear
from landbridge.passes.lower.combiners import combiner, sums_up
from landbridge.passes.lower.cost import SHARED_WINDOWS
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_body import computes_indices
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Nest, Stage, widest_bytes
from landbridge.passes.lower.row_memory import in_rows
from landbridge.records import record
from landbridge.sizes.size import Extent, at_least


@record(frozen=True)
class SharedWindow:
    """The ``iterations`` of reduction loop ``dim`` in which rows of a tile have loads in common: a row reads element
    ``row * stride + iteration``.

    Elements are vectors if ``lanes`` is 0; otherwise contiguous scalars, of which a vector holds ``lanes``.
    """

    dim: int
    iterations: int
    stride: int
    lanes: int = 0

    def vectors(self, m_size: int) -> int:
        """Returns the number of vectors that hold all elements of ``m_size`` rows; for one column if elements are
        vectors.
        """
        return -(-(self.stride * (m_size - 1) + self.iterations) // max(self.lanes, 1))

    def loads(self, m_size: int, n_size: int) -> float:
        """Returns the average number of vectors and scalars that an iteration of a tile loads."""
        if self.lanes:
            return self.vectors(m_size) / self.iterations + n_size
        return self.vectors(m_size) * n_size / self.iterations + 1

    def in_memory_order(self, m_size: int, n_size: int) -> bool:
        """Returns whether going through the window in the order of memory takes fewer registers than going by
        iteration.

        In the order of memory, the column vectors of all iterations stay in registers; by iteration, the whole window
        does.
        """
        return not self.lanes or self.iterations * n_size + 2 < self.vectors(m_size) + n_size + 1

    def extra_registers(self, m_size: int, n_size: int) -> int:
        """Returns the registers that a tile needs in addition to its accumulators."""
        if not self.lanes:
            return self.iterations + n_size  # one scalar per iteration, and the vectors of one location
        if self.in_memory_order(m_size, n_size):
            return self.iterations * n_size + 2
        return self.vectors(m_size) + n_size + 1


def window_stride(indices: Iterable[Linear], m_dim: int, d: int, iterations: Extent) -> int | None:
    """Returns how many of the ``iterations`` of loop ``d`` advance ``indices`` as far as one iteration of ``m_dim``.

    Returns None unless that is one number for all indices that move along the two loops, and windows overlap.
    """
    strides = {_stride(x, m_dim, d) for x in indices if x.uses(m_dim) or x.uses(d)}
    stride = strides.pop() if len(strides) == 1 else None
    return stride if stride is not None and isinstance(iterations, int) and stride < iterations else None


def _stride(x: Linear, m_dim: int, d: int) -> int | None:
    step, iteration = x.coeff(m_dim), x.coeff(d)
    if x.nonlinear_in(m_dim) or x.nonlinear_in(d) or not isinstance(step, int) or not isinstance(iteration, int):
        return None
    return step // iteration if iteration > 0 and step > 0 and step % iteration == 0 else None


def tested_indices(reads: Iterable[ElementAccess]) -> list[Linear]:
    """Returns the indices of ``reads``, and those that their guards test."""
    return [x for r in reads for x in (r.index, *(g.index for g in r.guards))]


def scalar_window(
    nest: Nest, lane: int | None, m_dim: int | None, inner: Sequence[int], vector_bytes: int
) -> SharedWindow | None:
    """Returns the window of scalars that rows of a tile share in the last of the reduction loops ``inner``; None if
    there is none.

    All lanes share a scalar, and everything else that is read there must be the same for all rows. Such windows occur
    in a first convolution, whose input channels are not lanes, and in one-dimensional convolutions.
    """
    main = nest.reduction
    if main is None or lane is None or m_dim is None or not inner or not sums_up(main) or computes_indices(main):
        return None
    last, reads = inner[-1], _reads(main)
    shared = [r for r in reads if has_contiguous_scalars(r, lane, last)]
    iterations = _unrollable(nest, last)
    if iterations is None or len(shared) != 1 or len(main.writes) != 1 or shared[0].element != main.writes[0].element:
        return None
    if any(r.varies(m_dim) or r.index.nonlinear_in(last) for r in reads if r is not shared[0]):
        return None
    stride = window_stride(tested_indices(shared), m_dim, last, iterations)
    return None if stride is None else SharedWindow(last, iterations, stride, vector_bytes // widest_bytes(main.body))


def vector_window(nest: Nest, lane: int | None, m_dim: int | None, inner: Sequence[int]) -> SharedWindow | None:
    """Returns the window of vectors that rows of a tile share in one of the reduction loops ``inner``; None if there
    is none.

    Everything else that is read there must be one scalar for all lanes and rows. These are convolutions to few
    channels, whose lanes lie along the pixels of a line and whose rows are lines. Without the window, each
    multiplication has an unaligned memory operand, which often touches two cache lines.
    """
    main = nest.reduction
    if main is None or lane is None or m_dim is None or m_dim == lane or lane in inner or nest.is_scan:
        return None
    if combiner(main) is None or len(main.writes) != 1 or computes_indices(main):
        return None
    extent, reads = nest.dims[m_dim].extent, _reads(main)
    moving = [r for r in reads if r.varies(m_dim)]
    if len(reads) < 2 or not moving or (isinstance(extent, int) and extent <= SHARED_WINDOWS.few_rows):
        return None
    if any(r.varies(lane) for r in reads if r not in moving) or not all(r.uses(lane) for r in moving):
        return None
    if any(in_rows(r.buffer.type) or is_image(r.buffer.type) for r in moving):
        return None
    for d in inner:
        if (iterations := _unrollable(nest, d)) is None:
            continue
        if (stride := window_stride(tested_indices(moving), m_dim, d, iterations)) is not None:
            return SharedWindow(d, iterations, stride)
    return None


def overlap_of_rows(main: Stage, lane: int, m_dim: int | None, last: int, extent: Extent) -> SharedWindow | None:
    """Returns the window of vectors that rows share in loop ``last`` if everything that ``main`` reads is a vector;
    None if there is none.
    """
    reads = _reads(main)
    if m_dim is None or not isinstance(extent, int) or not 1 < extent <= SHARED_WINDOWS.iterations:
        return None
    if not all(r.index.coeff(lane) for r in reads) or any(r.index.nonlinear_in(last) for r in reads):
        return None
    for r in reads:
        step, distance = r.index.coeff(last), r.index.coeff(m_dim)
        if isinstance(step, int) and isinstance(distance, int) and 0 < step <= distance < step * extent:
            return SharedWindow(last, extent, distance // step) if distance % step == 0 else None
    return None


def grouped_iterations(nest: Nest, lane: int | None, m_dim: int | None, inner: Sequence[int], vector_bytes: int) -> int:
    """Returns how many iterations of the last of the reduction loops ``inner`` are unrolled; 1 if that gains nothing.

    It is the number of scalars in a vector, or the width of a window of vectors. For targets whose arithmetic takes no
    operand from memory.
    """
    main = nest.reduction
    if main is None or lane is None or not inner or not sums_up(main) or computes_indices(main):
        return 1  # a body that computes indices has them for one iteration only
    last = inner[-1]
    if any(b.outer == last for b in nest.bounds):
        return 1
    extent = nest.dims[last].extent
    partial = any(b.inner == last and b.extent % b.tile for b in nest.bounds)  # the last tile has fewer iterations
    if not partial and overlap_of_rows(main, lane, m_dim, last, extent) is not None:
        assert isinstance(extent, int)
        return extent
    reads = _reads(main)
    if any(g.index.uses(last) for r in reads for g in r.guards):
        return 1
    if not any(has_contiguous_scalars(r, lane, last) and r.element == main.writes[0].element for r in reads):
        return 1
    iterations = vector_bytes // widest_bytes(main.body)
    if partial and not all(b.outer in inner for b in nest.bounds if b.inner == last):
        return 1
    return iterations if at_least(extent, iterations) is True else 1


def has_contiguous_scalars(a: ElementAccess, lane: int | None, last: int) -> bool:
    """Returns whether ``a`` reads one scalar for all lanes, and contiguous scalars in the iterations of loop
    ``last``.
    """
    if lane is None or a.varies(lane) or a.index.coeff(last) != 1 or a.index.nonlinear_in(last):
        return False
    return not in_rows(a.buffer.type) and not is_image(a.buffer.type)


def iterations_between(main: Stage | None, lane: int | None, last: int) -> int:
    """Returns how many consecutive iterations of loop ``last`` read between each other's lanes along ``lane``; 1 if
    none do.

    In a filter that keeps every second sample, neighbouring lanes read every second element and the iterations advance
    by one element. Two iterations then read the same vectors: one takes the even elements, the other the odd ones.
    """
    if main is None or lane is None:
        return 1
    return max((stride_between(r, lane, last) for r in _reads(main)), default=1)


def stride_between(r: ElementAccess, lane: int, last: int) -> int:
    """Returns the stride of ``r`` from lane to lane, in elements, if each iteration of ``last`` advances it by one
    element; else 1.
    """
    goes_on = not r.guards and not r.index.nonlinear_in(last) and r.index.coeff(last) == 1
    return int(r.index.coeff(lane)) if goes_on and walk_of(r, lane) is Walk.STRIDED else 1


def _reads(main: Stage) -> list[ElementAccess]:
    return [r for r in main.reads if isinstance(r, ElementAccess)]


def _unrollable(nest: Nest, d: int) -> int | None:
    """Returns the iterations of loop ``d`` if all of them may be unrolled as a window, else None."""
    extent = nest.dims[d].extent
    if not isinstance(extent, int) or not 1 < extent <= SHARED_WINDOWS.iterations:
        return None
    return None if any(d in (b.inner, b.outer) for b in nest.bounds) else extent
