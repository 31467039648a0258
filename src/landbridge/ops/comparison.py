"""Comparisons, selection and casts."""

from __future__ import annotations

from landbridge.ir.scalar_dtypes import float_limits, is_float
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, ROUNDED, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.rules import rules


def _comparison(op_type: str, kind: str) -> None:
    @rules("A: &S", "B: &S")
    @kernel("", op_type)
    @accuracy(EXACT)
    def handler(c: OpContext, a: Operand, b: Operand) -> Operand:
        return c.elementwise(kind, [a, b], lambda s, x, y: s.compare(kind, x, y), "bool", ())


for _type, _kind in {
    "Equal": "eq", "Less": "lt", "LessOrEqual": "le", "Greater": "gt", "GreaterOrEqual": "ge",
}.items():  # fmt: skip
    _comparison(_type, _kind)


@rules("condition: &S", "X: &S", "Y: &S")
@kernel("", "Where")
@accuracy(EXACT)
def where(c: OpContext, condition: Operand, a: Operand, b: Operand) -> Operand:
    """Computes ``a`` where the condition holds, else ``b``."""
    return c.elementwise("where", [condition, a, b], lambda s, q, x, y: s.select(q, x, y), c.dtype(a), ())


@rules("input: ...")
@kernel("", "Cast")
@accuracy(ROUNDED)
def cast(c: OpContext, x: Operand) -> Operand:
    """Converts to the dtype ``to`` as C does."""
    return c.cast(x, c.attribute("to"), saturate=bool(c.attribute("saturate", 1)))


@rules("input: ...", "target_type: ...")
@kernel("", "CastLike")
@accuracy(ROUNDED)
def cast_like(c: OpContext, x: Operand, like: Operand) -> Operand:
    """Converts to the dtype of ``like``."""
    return c.cast(x, c.dtype(like), saturate=bool(c.attribute("saturate", 1)))


def saturate(s: ScalarBuilder, v: Value, dtype: str) -> Value:
    """Converts a float to an integer dtype, clamped to its range."""
    low, high = float_limits(dtype)
    if is_float(dtype):
        return s.cast(v, dtype)
    return s.cast(s.minimum(s.maximum(v, low), high), dtype)
