"""Constants and dtypes in translations of torch's operators."""

from __future__ import annotations

from typing import Any

from onnxscript import opset18 as op

#: Element types of TensorProto.
FLOAT, INT32, INT64, BOOL, DOUBLE = 1, 6, 7, 9, 11


def ints(*values: int) -> Any:
    """Returns a constant int64 tensor of one axis."""
    return op.Constant(value_ints=list(values))


def constant_like(number: float, x: Any) -> Any:
    """Returns a scalar of the dtype of ``x``, rounded to float32."""
    return op.CastLike(op.Constant(value_float=number), x)


def is_float(x: Any) -> bool:
    """Returns whether its elements have a floating-point dtype."""
    return bool(x.dtype.is_floating_point())
