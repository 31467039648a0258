"""What elementwise operators are in real numbers: functions of arrays in more precision than the operands have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Unary:
    """An operator of one float, its function, and the node's attributes."""

    op: str
    function: Callable[[Array], Array]
    attributes: Mapping[str, Any] = field(default_factory=dict)


_erf, _erfc = np.vectorize(math.erf, otypes=[float]), np.vectorize(math.erfc, otypes=[float])


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e / (1 + e), 1 / (1 + e))


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _gelu(x: Array) -> Array:
    return np.where(x == -np.inf, np.nan, 0.5 * x * _erfc(-x.astype(float) * math.sqrt(0.5)))


def _gelu_tanh(x: Array) -> Array:
    return np.where(x == -np.inf, np.nan, x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _mish(x: Array) -> Array:
    # tanh(log(1 + e^x)) = (e^2x + 2 e^x) / (e^2x + 2 e^x + 2), by e^-|x| that never overflows.
    e = np.exp(-np.abs(x))
    up = np.where(x < 0, e * e + 2 * e, 1 + 2 * e)
    return x * (up / (up + np.where(x < 0, 2, 2 * e * e)))


def _elu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def f32(x: float) -> float:
    """An attribute as a model keeps it."""
    return float(np.float32(x))


_SELU = (1.67326319217681884765625, 1.05070102214813232421875)

UNARY = {
    "Acos": Unary("Acos", np.arccos),
    "Acosh": Unary("Acosh", np.arccosh),
    "Asin": Unary("Asin", np.arcsin),
    "Asinh": Unary("Asinh", np.arcsinh),
    "Atan": Unary("Atan", np.arctan),
    "Atanh": Unary("Atanh", np.arctanh),
    "Cos": Unary("Cos", np.cos),
    "Cosh": Unary("Cosh", np.cosh),
    "Erf": Unary("Erf", _erf),
    "Exp": Unary("Exp", np.exp),
    "Log": Unary("Log", np.log),
    "Sin": Unary("Sin", np.sin),
    "Sinh": Unary("Sinh", np.sinh),
    "Sqrt": Unary("Sqrt", np.sqrt),
    "Tan": Unary("Tan", np.tan),
    "Tanh": Unary("Tanh", np.tanh),
    "Reciprocal": Unary("Reciprocal", lambda x: 1 / x),
    "Sigmoid": Unary("Sigmoid", _sigmoid),
    "LeakyRelu": Unary("LeakyRelu", lambda x: np.where(x < 0, x * f32(0.01), x)),
    "ThresholdedRelu": Unary("ThresholdedRelu", lambda x: np.where(x > 1, x, 0)),
    "Elu": Unary("Elu", _elu),
    "Elu-1.5": Unary("Elu", lambda x: _elu(x, 1.5), {"alpha": 1.5}),
    "Selu": Unary("Selu", lambda x: _elu(x, _SELU[0]) * _SELU[1]),
    "Celu": Unary("Celu", _elu),
    "Celu-2": Unary("Celu", lambda x: np.where(x < 0, 2 * np.expm1(np.minimum(x, 0) / 2), x), {"alpha": 2.0}),
    "Celu-0.3": Unary(
        "Celu",
        lambda x: np.where(x < 0, f32(0.3) * np.expm1(np.minimum(x, 0) / f32(0.3)), x),
        {"alpha": 0.3},
    ),
    "HardSigmoid": Unary("HardSigmoid", lambda x: np.minimum(np.maximum(x * f32(0.2) + 0.5, 0), 1)),
    "HardSwish": Unary("HardSwish", lambda x: x * np.minimum(np.maximum(x / 6 + 0.5, 0), 1)),
    "Swish": Unary("Swish", lambda x: x * _sigmoid(x)),
    "Swish-1.702": Unary("Swish", lambda x: x * _sigmoid(f32(1.702) * x), {"alpha": 1.702}),
    "Softplus": Unary("Softplus", _softplus),
    "Mish": Unary("Mish", _mish),
    "Softsign": Unary("Softsign", lambda x: x / (np.abs(x) + 1)),
    "Gelu": Unary("Gelu", _gelu),
    "Gelu-tanh": Unary("Gelu", _gelu_tanh, {"approximate": "tanh"}),
    "Shrink": Unary(
        "Shrink", lambda x: np.where(x < -1, x + 0.25, np.where(x > 1, x - 0.25, 0)), {"lambd": 1.0, "bias": 0.25}
    ),
    "Abs": Unary("Abs", np.abs),
    "Neg": Unary("Neg", np.negative),
    "Floor": Unary("Floor", np.floor),
    "Ceil": Unary("Ceil", np.ceil),
    "Round": Unary("Round", np.rint),
    "Sign": Unary("Sign", np.sign),
    "Relu": Unary("Relu", lambda x: np.where(x < 0, 0, x)),
}
