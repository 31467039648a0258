"""Windows of pools that neighbouring rows of a tile share.

Each row that is read is folded along the window once, and the result is folded into every row of the tile whose window
contains it. A maximum or a sum over 3 x 3 then takes three loads and five or six operations per row of a tile, not nine
of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from landbridge.passes.lower.access import ElementAccess, Linear
from landbridge.passes.lower.body import value_of
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.combiners import combiner, fold, folded_term
from landbridge.passes.lower.cost import SHARED_WINDOWS
from landbridge.passes.lower.lane_body import computes_indices
from landbridge.passes.lower.lane_walk import lane_guards
from landbridge.passes.lower.nest import Nest
from landbridge.records import record


@record(frozen=True)
class RowWindow:
    """A window that moves along the rows by loop ``dim`` of ``iterations``; each row is ``stride`` iterations further
    on.

    The loops ``written_out``, inside a row, are fully unrolled.
    """

    read: ElementAccess
    dim: int
    iterations: int
    stride: int
    written_out: tuple[int, ...]

    def places(self, m_size: int) -> Iterator[list[tuple[int, int]]]:
        """Yields, for each row that ``m_size`` tile rows read, the pairs of tile row and iteration that read it."""
        for at in range((m_size - 1) * self.stride + self.iterations):
            yield [(m, at - m * self.stride) for m in range(m_size) if 0 <= at - m * self.stride < self.iterations]


def row_window(nest: Nest, lane: int | None, m_dim: int | None, inner: Sequence[int]) -> RowWindow | None:
    """Returns the window that rows of a tile share; None if there is none.

    The reduction of ``nest``, over loops ``inner``, must only fold the window, in vectors along ``lane``.
    """
    main = nest.reduction
    if main is None or m_dim is None or lane is None or lane in (m_dim, *inner) or nest.bounds or nest.is_scan:
        return None
    reads = [r for r in main.reads if isinstance(r, ElementAccess)]
    if combiner(main) is None or len(main.writes) != 1 or len(reads) != 1 or computes_indices(main):
        return None
    (read,) = reads
    for d in inner:
        iterations, stride = nest.dims[d].extent, _stride(read.index, m_dim, d)
        if (
            stride is None
            or not isinstance(iterations, int)
            or not stride < iterations <= SHARED_WINDOWS.row_iterations
        ):
            continue
        if all(_stride(g.index, m_dim, d) == stride for g in read.guards if g.index.uses(m_dim) or g.index.uses(d)):
            return RowWindow(read, d, iterations, stride, _written_out(nest, lane, inner, read, d))
    return None


def _stride(index: Linear, m_dim: int, d: int) -> int | None:
    """Returns how many iterations of loop ``d`` advance ``index`` as far as one row; None if it is not a whole
    number.
    """
    step, iteration = index.coeff(m_dim), index.coeff(d)
    if (
        index.rest
        or not isinstance(step, int)
        or not isinstance(iteration, int)
        or iteration <= 0
        or step <= 0
        or step % iteration
    ):
        return None
    return step // iteration


def _written_out(nest: Nest, lane: int, inner: Sequence[int], read: ElementAccess, dim: int) -> tuple[int, ...]:
    """Returns the loops of the window other than ``dim`` that are unrolled: none of them is in a guard, except guards
    of lanes.

    Returns none if they have too many iterations together.
    """
    tested = [g for g in read.guards if g not in lane_guards(read, lane)]
    found = [d for d in inner if d != dim and not any(g.index.uses(d) for g in tested)]
    extents = [nest.dims[d].extent for d in found]
    is_short = all(isinstance(e, int) for e in extents) and math.prod(extents) <= SHARED_WINDOWS.other_iterations
    return tuple(found) if is_short else ()


def fold_row(
    code: Code, nest: Nest, window: RowWindow, lanes: int, read: Callable[[dict[int, int]], SSAValue]
) -> SSAValue:
    """Returns one row folded along the unrolled loops; ``read`` reads it at given iterations of these loops."""
    main = nest.reduction
    assert main is not None
    argument = main.body.args[main.reads.index(window.read)]
    folded: SSAValue | None = None
    for at in product(*(range(nest.dims[d].extent) for d in window.written_out)):
        value = read(dict(zip(window.written_out, at, strict=True)))
        term = value_of(code, folded_term(main), {argument: value}, lanes)
        if not isinstance(term.type, VectorType):
            term = code.broadcast(term, lanes)
        folded = term if folded is None else fold(code, main, folded, term)
    assert folded is not None
    return folded
