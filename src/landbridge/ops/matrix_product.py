"""The product of two matrices: one generic (m, n, k)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from landbridge.errors import ShapeError
from landbridge.ir.prim_builder import Body, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops.context import OpContext, Operand
from landbridge.sizes.size import Extent, must_agree


def multiply_add(s: ScalarBuilder, total: Value, x: Value, y: Value) -> Value:
    """Returns the total plus the product of ``x`` and ``y``."""
    return total + x * y


def check_inner(c: OpContext, left: Sequence[Extent], right: Sequence[Extent], k: Extent, other: Extent) -> None:
    """Raises ShapeError unless ``k`` and ``other``, of operands of shapes ``left`` and ``right``, are equal."""
    if not must_agree(f"{c.g.node}: the inner extents of {tuple(left)} and {tuple(right)}", k, other):
        raise ShapeError(
            f"{c.g.node}: {c.op_type} of {tuple(left)} and {tuple(right)}; the inner extents must be equal"
        )


def matrix_product(
    c: OpContext,
    a: Operand,
    b: Operand,
    trans_a: bool = False,
    trans_b: bool = False,
    term: Body = multiply_add,
) -> Operand:
    """Computes ``a @ b`` of matrices, [M, K] x [K, N], in the accumulator's dtype; a transposed constant is transposed
    back here.

    ``term(s, total, x, y)`` is the total with one more term, that of ``x`` and ``y``.
    """
    if trans_a and isinstance(a, np.ndarray):
        a, trans_a = c.transpose(a, (1, 0)), False
    if trans_b and isinstance(b, np.ndarray):
        b, trans_b = c.transpose(b, (1, 0)), False
    (m, k), (k_b, n) = _transposed(c.shape(a), trans_a), _transposed(c.shape(b), trans_b)
    check_inner(c, (m, k), (k_b, n), k, k_b)

    def build(p: PrimBuilder) -> None:
        p.generic(
            "ppr",
            (m, n, k),
            [
                (p.inputs[0], lambda m, n, k: [k, m] if trans_a else [m, k]),
                (p.inputs[1], lambda m, n, k: [n, k] if trans_b else [k, n]),
            ],
            [(p.outputs[0], lambda m, n, k: [m, n])],
            term,
            init=0,
        )

    key = (trans_a, trans_b) if term is multiply_add else None
    return c.g.call("matmul", [c.value(a), c.value(b)], [((m, n), accumulator(c.dtype(a)))], build, key)[0]


def batched_product(c: OpContext, a: Operand, b: Operand, term: Body = multiply_add) -> Operand:
    """Computes ``a @ b`` of [B, M, K] and [B, K, N], in the accumulator's dtype; ``term`` as of ``matrix_product``."""
    (count, m, k), (_, _, n) = c.shape(a), c.shape(b)

    def build(p: PrimBuilder) -> None:
        p.generic(
            "pppr",
            (count, m, n, k),
            [(p.inputs[0], lambda i, m, n, k: [i, m, k]), (p.inputs[1], lambda i, m, n, k: [i, k, n])],
            [(p.outputs[0], lambda i, m, n, k: [i, m, n])],
            term,
            init=0,
        )

    return c.g.call("matmul", [c.value(a), c.value(b)], [((count, m, n), accumulator(c.dtype(a)))], build)[0]


def _transposed(shape: tuple[int, ...], transpose: bool) -> tuple[int, ...]:
    return shape[::-1] if transpose else shape
