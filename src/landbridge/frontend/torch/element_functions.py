"""Translations of elementwise functions of torch to ONNX operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, pi, sqrt
from typing import Any

from onnxscript import opset18 as op

from landbridge.frontend.torch.custom_operators import custom_operator
from landbridge.frontend.torch.values import DOUBLE, FLOAT, constant_like, is_float

#: Coefficients of the inverse of erf, highest power first: of w - 2.5 and of sqrt(w) - 3, for w = -ln(1 - x^2).
#: Accurate to 1e-7 (M. Giles, "Approximating the erfinv function").
_SMALL = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
         -0.00417768164, 0.246640727, 1.50140941)  # fmt: skip
_LARGE = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
        1.00167406, 2.83297682)  # fmt: skip


def translations() -> dict[Any, Callable[..., Any]]:
    """Returns the translations, for ``torch.onnx.export(custom_translation_table=)``."""
    import torch

    aten = torch.ops.aten
    return {
        aten.erfinv.default: _inverse_erf,
        aten.lgamma.default: lambda x: custom_operator("LogGamma", 1)(x),
        aten.digamma.default: lambda x: custom_operator("Digamma", 1)(x),
        aten.signbit.default: _sign_bit,
        aten.copysign.Tensor: _copied_sign,
        aten.rrelu_with_noise_functional.default: _leaky,
    }


def _inverse_erf(x: Any) -> Any:
    """Returns the inverse of erf by polynomials, refined by two steps of Newton's method for float64."""
    wide = x if x.dtype in (FLOAT, DOUBLE) else op.Cast(x, to=FLOAT)
    one = constant_like(1.0, wide)
    w = op.Neg(op.Log(op.Mul(op.Sub(one, wide), op.Add(one, wide))))
    small = _polynomial(_SMALL, op.Sub(w, constant_like(2.5, wide)))
    large = _polynomial(_LARGE, op.Sub(op.Sqrt(op.Max(w, constant_like(5.0, wide))), constant_like(3.0, wide)))
    y = op.Mul(wide, op.Where(op.Less(w, constant_like(5.0, wide)), small, large))
    if x.dtype == DOUBLE:
        for _ in range(2):
            slope = op.Mul(op.Exp(op.Neg(op.Mul(y, y))), constant_like(2 / sqrt(pi), y))
            y = op.Sub(y, op.Div(op.Sub(op.Erf(y), wide), slope))
    y = op.Where(op.Equal(op.Abs(wide), one), op.Mul(wide, constant_like(inf, wide)), y)
    return y if wide is x else op.CastLike(y, x)


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    total = constant_like(coefficients[0], x)
    for coefficient in coefficients[1:]:
        total = op.Add(op.Mul(total, x), constant_like(coefficient, x))
    return total


def _sign_bit(x: Any) -> Any:
    """Returns whether the sign bit is set, also for -0; false for NaN."""
    zero = constant_like(0.0, x)
    below = op.Less(x, zero)
    return op.Or(below, op.Less(op.Reciprocal(x), zero)) if is_float(x) else below


def _copied_sign(x: Any, sign: Any) -> Any:
    most = op.Abs(x)
    return op.Where(_sign_bit(sign), op.Neg(most), most)


def _leaky(
    x: Any, noise: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> tuple[Any, Any]:
    """Returns RReLU as outside of training, and the noise unchanged."""
    if training:
        raise ValueError("rrelu draws random slopes in training, and a program is for inference")
    return op.LeakyRelu(x, alpha=(lower + upper) / 2), noise
