"""Matrix products: one generic (m, n, k) or (batches, m, n, k); all other operations are separate calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.errors import ShapeError
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import SUMS, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.dequantized_products import dequantized_product
from landbridge.ops.legal import Condition, holds
from landbridge.ops.matrix_product import check_inner, matrix_product, multiply_add
from landbridge.ops.rules import rules
from landbridge.ops.unread import unread
from landbridge.sizes.size import Extent, Size, same


def _batched(c: OpContext, a: Operand, b: Operand, batch: Sequence[Extent]) -> Operand:
    """Computes ``a @ b`` over broadcast leading dimensions, in the accumulator's dtype."""
    (*lead_a, m, k), (*lead_b, _, n) = c.shape(a), c.shape(b)
    rank = len(batch)

    def leading(lead: Sequence[int], d: Sequence[Any]) -> list[Any]:
        skipped = rank - len(lead)
        return [d[skipped + i] if e == batch[skipped + i] else 0 for i, e in enumerate(lead)]

    def build(p: PrimBuilder) -> None:
        p.generic(
            "p" * (rank + 2) + "r",
            (*batch, m, n, k),
            [
                (p.inputs[0], lambda *d: [*leading(lead_a, d), d[rank], d[rank + 2]]),
                (p.inputs[1], lambda *d: [*leading(lead_b, d), d[rank + 2], d[rank + 1]]),
            ],
            [(p.outputs[0], lambda *d: d[: rank + 2])],
            multiply_add,
            init=0,
        )

    return c.g.call(
        "matmul", [c.value(a), c.value(b)], [((*batch, m, n), accumulator(c.dtype(a)))], build, "broadcast"
    )[0]


def _may_read_cache(m: Extent, k: Extent, n: Extent) -> bool:
    """Returns whether the right operand may be a part of a cache: it has an open number of steps, and the left another.

    Such a part has gaps between its heads, so its leading axes are no single axis.
    """
    return any(isinstance(steps, Size) and not same(steps, m) for steps in (k, n))


@rules("A: _ ...", "B: _ ...")
@kernel("", "MatMul")
@unread()
@accuracy(SUMS)
def matmul(c: OpContext, a: Operand, b: Operand) -> Operand:
    """Computes numpy's matmul: vectors are promoted, leading dimensions broadcast."""
    shape_a, shape_b = c.shape(a), c.shape(b)
    if not shape_a or not shape_b:
        raise ShapeError(f"{c.g.node}: MatMul of a scalar; both operands need a rank of 1 or more")
    left = shape_a if len(shape_a) > 1 else (1, *shape_a)
    right = shape_b if len(shape_b) > 1 else (*shape_b, 1)
    check_inner(c, shape_a, shape_b, left[-1], right[-2])
    (m, k), n = left[-2:], right[-1]
    if len(shape_b) == 2 and len(shape_a) > 1 and (total := dequantized_product(c, a, b)) is not None:
        return total
    batch, (a, b) = c.broadcast([c.reshape(a, left), c.reshape(b, right)], retained=2)
    left, right = c.shape(a), c.shape(b)
    count = element_count(batch)
    if element_count(right[:-2]) == 1:
        y = matrix_product(c, c.reshape(a, (count * m, k)), c.reshape(b, (k, n)))
    elif left[:-2] == right[:-2] and not _may_read_cache(m, k, n):
        y = _batched(c, c.reshape(a, (count, m, k)), c.reshape(b, (count, k, n)), (count,))
    else:
        y = _batched(c, a, b, batch)
    y = c.cast(y, c.dtype(a))
    return c.reshape(y, (*batch, *shape_a[-2:-1], *(shape_b[-1:] if len(shape_b) > 1 else ())))


@rules(
    "A: _ _",
    "B: _ _",
    "C?: ...",
    attributes={"transA": holds("True", default=0), "transB": holds("True", default=0)},
    where=(
        Condition(
            "A[0 if transA else 1] == B[1 if transB else 0]",
            "the columns of A (transA: its rows) are as many as the rows of B",
        ),
        Condition(
            "broadcasts(C, (A[1 if transA else 0], B[0 if transB else 1]))", "C broadcasts to rows of A by columns of B"
        ),
    ),
)
@kernel("", "Gemm")
@accuracy(SUMS)
def gemm(c: OpContext, a: Operand, b: Operand, bias: Operand | None = None) -> Operand:
    """Computes ``alpha * a' @ b' + beta * bias`` with optional transposes."""
    trans_a, trans_b = bool(c.attribute("transA", 0)), bool(c.attribute("transB", 0))
    total = None if trans_a else dequantized_product(c, a, b, trans_b)
    y = matrix_product(c, a, b, trans_a, trans_b) if total is None else total
    alpha, beta = c.attribute("alpha", 1.0), c.attribute("beta", 1.0)
    dtype = c.dtype(a)
    if isinstance(bias, np.ndarray) and beta != 1.0:
        bias, beta = (bias.astype(numpy_dtype(accumulator(dtype))) * beta).astype(numpy_dtype(accumulator(dtype))), 1.0
    if bias is None or beta == 0.0:
        return c.cast(y if alpha == 1.0 else c.elementwise("scale", [y], lambda s, v: v * alpha), dtype)
    return c.elementwise(
        "add",
        [y, c.repeated(bias, c.shape(y), "C")],
        lambda s, v, z: (v if alpha == 1.0 else v * alpha) + (z if beta == 1.0 else z * beta),
        dtype,
    )
