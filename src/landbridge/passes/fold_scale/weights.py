"""Scales the constant weights of a sum of products instead of its results."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from landbridge.analysis.accesses import writers_of
from landbridge.ir.stages import Generic, Operand, view_generic
from landbridge.ir.traversal import operations
from landbridge.passes.fold_scale.steps import Aligned
from landbridge.process.background_threads import in_parts
from landbridge.records import record

Array = np.ndarray[Any, Any]


@record(frozen=True)
class Factor:
    """An input of a sum of products that is an argument of its PrimFunc, and the access of the sum's output."""

    argument: int
    operand: Operand
    result: Operand


def factors_before(buffer: SSAValue, arguments: list[SSAValue]) -> list[Factor]:
    """Returns the inputs of the sum of products that is the only writer of ``buffer`` and starts from zero."""
    fills = [op for op in writers_of(buffer) if isinstance(op, linalg.ops.FillOp)]
    sums = [op for op in writers_of(buffer) if isinstance(op, linalg.ops.GenericOp)]
    if len(fills) != 1 or len(sums) != 1 or len(writers_of(buffer)) != 2 or not _is_zero(fills[0].operands[0].owner):
        return []
    stage = view_generic(sums[0])
    if not stage.reduces or not _sums_products(stage):
        return []
    return [Factor(arguments.index(o.buffer), o, stage.outs[0]) for o in stage.ins if o.buffer in arguments]


def scaled(weights: Array, factor: Factor, scale: Aligned) -> Array | None:
    """Returns ``weights`` times ``scale``, whose axes are those of the result; None if one is no axis of the
    weights."""
    axes: dict[int, int] = {}
    for loop, extent in enumerate(scale.shape):
        if extent == 1:
            continue
        index = factor.result.map.results[loop]
        axis = next((a for a, e in enumerate(factor.operand.map.results) if e == index), -1)
        if axis < 0 or axis in axes or weights.shape[axis] != extent:
            return None
        axes[axis] = loop
    order = [axes[a] for a in sorted(axes)]
    compact = scale.transpose(order + [d for d in range(scale.ndim) if d not in order])
    aligned = compact.reshape([weights.shape[a] if a in axes else 1 for a in range(weights.ndim)])
    product = np.empty_like(weights)
    rows, scales, out = np.atleast_1d(weights, aligned, product)
    finite: list[bool] = []

    def multiply(begin: int, end: int) -> None:
        of = scales[begin:end] if len(scales) > 1 else scales
        with np.errstate(over="ignore"):
            np.multiply(rows[begin:end], of, out=out[begin:end], dtype=np.float64, casting="same_kind")
        finite.append(bool(np.isfinite(out[begin:end]).all()))

    in_parts(multiply, len(rows), weights.nbytes)
    return product if all(finite) else None


def _is_zero(op: object) -> bool:
    return isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr) and op.value.value.data == 0


def _sums_products(stage: Generic) -> bool:
    """Returns whether the body is ``total + a * b``."""
    ops: list[Operation] = operations(stage.body)
    if len(stage.ins) != 2 or len(stage.outs) != 1 or len(ops) != 3:
        return False
    product, total, last = ops
    if not isinstance(product, arith.MulfOp) or not isinstance(total, arith.AddfOp):
        return False
    return (
        set(product.operands) == {o.scalar for o in stage.ins}
        and set(total.operands) == {product.result, stage.outs[0].scalar}
        and list(last.operands) == [total.result]
    )
