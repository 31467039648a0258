"""What elementwise operators are in real numbers: functions of arrays in more precision than the operands have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """An operator of floats, its function, the node's attributes, and, where its bound is of sums, the magnitudes of
    what is summed."""

    op: str
    function: Callable[..., Array]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    condition: Callable[..., Array] | None = None


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


def _power(x: Array, y: Array) -> Array:
    """glibc's pow of 80 bits has infinity for a power of -infinity that is 0."""
    return np.where(np.isinf(x), np.power(x.astype(float), y.astype(float)), np.power(x, y))


def f32(x: float) -> float:
    """An attribute as a model keeps it."""
    return float(np.float32(x))


_SELU = (1.67326319217681884765625, 1.05070102214813232421875)

UNARY = {
    "Acos": Case("Acos", np.arccos),
    "Acosh": Case("Acosh", np.arccosh),
    "Asin": Case("Asin", np.arcsin),
    "Asinh": Case("Asinh", np.arcsinh),
    "Atan": Case("Atan", np.arctan),
    "Atanh": Case("Atanh", np.arctanh),
    "Cos": Case("Cos", np.cos),
    "Cosh": Case("Cosh", np.cosh),
    "Erf": Case("Erf", _erf),
    "Exp": Case("Exp", np.exp),
    "Log": Case("Log", np.log),
    "Sin": Case("Sin", np.sin),
    "Sinh": Case("Sinh", np.sinh),
    "Sqrt": Case("Sqrt", np.sqrt),
    "Tan": Case("Tan", np.tan),
    "Tanh": Case("Tanh", np.tanh),
    "Reciprocal": Case("Reciprocal", lambda x: 1 / x),
    "Sigmoid": Case("Sigmoid", _sigmoid),
    "LeakyRelu": Case("LeakyRelu", lambda x: np.where(x < 0, x * f32(0.01), x)),
    "ThresholdedRelu": Case("ThresholdedRelu", lambda x: np.where(x > 1, x, 0)),
    "Elu": Case("Elu", _elu),
    "Elu-1.5": Case("Elu", lambda x: _elu(x, 1.5), {"alpha": 1.5}),
    "Selu": Case("Selu", lambda x: _elu(x, _SELU[0]) * _SELU[1]),
    "Celu": Case("Celu", _elu),
    "Celu-2": Case("Celu", lambda x: np.where(x < 0, 2 * np.expm1(np.minimum(x, 0) / 2), x), {"alpha": 2.0}),
    "Celu-0.3": Case(
        "Celu",
        lambda x: np.where(x < 0, f32(0.3) * np.expm1(np.minimum(x, 0) / f32(0.3)), x),
        {"alpha": 0.3},
    ),
    "HardSigmoid": Case(
        "HardSigmoid",
        lambda x: np.minimum(np.maximum(x * f32(0.2) + 0.5, 0), 1),
        condition=lambda x: np.abs(x) * 0.2 + 0.5,
    ),
    "HardSwish": Case(
        "HardSwish",
        lambda x: x * np.minimum(np.maximum(x / 6 + 0.5, 0), 1),
        condition=lambda x: np.abs(x) * (np.minimum(np.abs(x), 3) / 6 + 0.5),
    ),
    "Swish": Case("Swish", lambda x: x * _sigmoid(x)),
    "Swish-2": Case("Swish", lambda x: x * _sigmoid(2 * x), {"alpha": 2.0}),
    "Softplus": Case("Softplus", _softplus),
    "Mish": Case("Mish", _mish),
    "Softsign": Case("Softsign", lambda x: x / (np.abs(x) + 1)),
    "Gelu": Case("Gelu", _gelu, condition=np.abs),
    "Gelu-tanh": Case("Gelu", _gelu_tanh, {"approximate": "tanh"}, np.abs),
    "Shrink": Case(
        "Shrink", lambda x: np.where(x < -1, x + 0.25, np.where(x > 1, x - 0.25, 0)), {"lambd": 1.0, "bias": 0.25}
    ),
    "Abs": Case("Abs", np.abs),
    "Neg": Case("Neg", np.negative),
    "Floor": Case("Floor", np.floor),
    "Ceil": Case("Ceil", np.ceil),
    "Round": Case("Round", np.rint),
    "Sign": Case("Sign", np.sign),
    "Relu": Case("Relu", lambda x: np.where(x < 0, 0, x)),
}


def _mean_terms(a: Array, b: Array) -> Array:
    """Half the sum of magnitudes; infinite where that overflows in f32, or f64 for f64, before it is halved."""
    terms = np.abs(a) + np.abs(b)
    highest = np.ldexp(terms.dtype.type(1), 1024 if terms.dtype == np.longdouble else 128)
    return np.where(terms < highest, terms / 2, np.inf)


BINARY = {
    "Add": Case("Add", np.add),
    "Sub": Case("Sub", np.subtract),
    "Mul": Case("Mul", np.multiply),
    "Div": Case("Div", np.divide),
    "Max": Case("Max", np.maximum),
    "Min": Case("Min", np.minimum),
    "Pow": Case("Pow", _power),
    "PRelu": Case("PRelu", lambda x, slope: np.where(x < 0, x * slope, x)),
    "Mod": Case("Mod", np.fmod, {"fmod": 1}),
    "Sum": Case("Sum", np.add, condition=lambda a, b: np.abs(a) + np.abs(b)),
    "Mean": Case("Mean", lambda a, b: (a + b) / 2, condition=_mean_terms),
}
