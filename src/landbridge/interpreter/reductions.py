"""Reductions by numpy ufuncs: which ufunc combines terms, and how many terms are combined at once.

Sums of floats are accumulated in f64 and rounded once, with f32 products added unrounded: no worse than any order of
additions that a schedule chooses. A reduction without such a ufunc runs one iteration after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, linalg
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from landbridge.interpreter.accesses import Array, OperandAccess, Ranges
from landbridge.interpreter.bodies import is_unrounded_product
from landbridge.interpreter.scalars import scalar_dtype
from landbridge.records import record

Ufunc: TypeAlias = Any

_COMBINERS: dict[type[Operation], Ufunc] = {
    arith.AddfOp: np.add, arith.AddiOp: np.add, arith.MulfOp: np.multiply, arith.MuliOp: np.multiply,
    arith.MaximumfOp: np.maximum, arith.MinimumfOp: np.minimum, arith.MaxnumfOp: np.fmax, arith.MinnumfOp: np.fmin,
    arith.MaxSIOp: np.maximum, arith.MinSIOp: np.minimum, arith.AndIOp: np.bitwise_and, arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
}  # fmt: skip


@record(frozen=True, eq=False)
class Combiner:
    """A reduction step: the accumulator becomes ``ufunc(accumulator, term)``. ``in_double``: float terms are added in
    f64."""

    ufunc: Ufunc
    term: SSAValue
    in_double: bool

    def combined(self, before: Array, term: Array, shape: Sequence[int], loops: Sequence[int]) -> Array:
        """Returns ``before`` with the terms of all iterations of reduction ``loops``; ``shape`` is that of the whole
        nest."""
        term = np.broadcast_to(term, shape)
        if not self.in_double:
            total = self.ufunc.reduce(term, axis=tuple(loops), keepdims=True, dtype=before.dtype)
            return np.asarray(self.ufunc(before, total))
        total = np.add.reduce(term, axis=tuple(loops), keepdims=True, dtype=np.float64)
        return np.asarray((before + total).astype(before.dtype))


def combiner_of(accumulator: BlockArgument, value: SSAValue) -> Combiner | None:
    """Returns how ``value``, the accumulator's next value, combines it with a term; None if no ufunc does that."""
    op = value.owner
    ufunc = _COMBINERS.get(type(op)) if isinstance(op, Operation) else None
    if ufunc is None or not isinstance(op, Operation) or accumulator not in op.operands:
        return None
    a, b = op.operands
    is_float_sum = isinstance(op, arith.AddfOp) and scalar_dtype(value.type).itemsize > 2
    return Combiner(ufunc, b if a is accumulator else a, is_float_sum)


def combiners_of(block: Block, accumulators: Sequence[BlockArgument]) -> list[Combiner] | None:
    """Returns how ``block`` combines terms into each accumulator; None if one is used in any other way."""
    last = block.last_op
    assert isinstance(last, linalg.ops.YieldOp)
    found = [combiner_of(a, value) for a, value in zip(accumulators, last.operands, strict=True)]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) and all(a.has_one_use() for a in accumulators) else None


def unrounded_terms(combiners: Sequence[Combiner]) -> frozenset[SSAValue]:
    """Returns the products that ``combiners`` add without rounding."""
    return frozenset(c.term for c in combiners if c.in_double and is_unrounded_product(c.term))


def factors_of(
    combiners: Sequence[Combiner], accesses: dict[SSAValue, OperandAccess]
) -> tuple[SSAValue, SSAValue] | None:
    """Returns the two operands whose products one sum adds up, of linear indices; None for another reduction."""
    if len(combiners) != 1 or not unrounded_terms(combiners):
        return None
    a, b = combiners[0].term.owner.operands  # type: ignore[union-attr]
    known = [accesses.get(v) for v in (a, b)]
    return (a, b) if a is not b and all(k is not None and k.is_linear for k in known) else None


def contracted(
    a: tuple[OperandAccess, Array], b: tuple[OperandAccess, Array], retained: Sequence[int], ranges: Ranges
) -> Array | None:
    """Returns the sums of ``a * b`` over all loops but those ``retained``, in f64, one axis per loop.

    Returns None if neither operand depends on a summed loop.
    """
    einsum: Any = np.einsum  # its types are those of subscripts as text
    views = []
    for access, buffer in (a, b):
        view = access.view(buffer, ranges)
        loops = [d for d in range(len(ranges)) if view.shape[d] > 1]
        views.append((view.reshape([view.shape[d] for d in loops]).astype(np.float64), loops))
    seen = {d for _, loops in views for d in loops}
    if any(d not in seen and stop - start > 1 and d not in retained for d, (start, stop) in enumerate(ranges)):
        return None
    shown = [d for d in retained if d in seen]
    total = einsum(*views[0], *views[1], shown, optimize=True)
    return np.asarray(total).reshape([b - a if d in shown else 1 for d, (a, b) in enumerate(ranges)])
