"""Activation functions. Each may write its result onto its first operand."""

from __future__ import annotations

import math

import numpy as np

from landbridge.array_type import Array
from landbridge.numpy_kernels.registry import kernel

#: Coefficients of the float32 error function on [-4, 4], odd numerator over even denominator, highest power first,
#: as Eigen has them (Eigen/src/Core/MathFunctionsImpl.h before version 3.5). The error is below 4 units in the last
#: place of 1.
_ERF_ABOVE = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_ERF_BELOW = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


@kernel("Relu")
def relu(x: Array, out: Array) -> None:
    """max(x, 0)."""
    np.maximum(x, x.dtype.type(0), out=out)


@kernel("Sigmoid")
def sigmoid(x: Array, out: Array) -> None:
    """1 / (1 + exp(-x))."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, out.dtype.type(1), out=out)
    np.reciprocal(out, out=out)


@kernel("HardSigmoid")
def hard_sigmoid(x: Array, out: Array, *, alpha: float, beta: float) -> None:
    """alpha * x + beta, limited to 0 to 1."""
    np.multiply(x, alpha, out=out)
    np.add(out, beta, out=out)
    np.clip(out, 0, 1, out=out)


@kernel("HardSwish")
def hard_swish(x: Array, out: Array) -> None:
    """x * limited(x / 6 + 1 / 2)."""
    np.multiply(x, np.clip(x * (1 / 6) + 0.5, 0, 1), out=out)


@kernel("LeakyRelu")
def leaky_relu(x: Array, out: Array, *, alpha: float) -> None:
    """x where it is positive, else alpha * x."""
    np.copyto(out, np.where(x < 0, x * alpha, x))


@kernel("PRelu")
def parametric_relu(x: Array, slope: Array, out: Array) -> None:
    """x where it is not negative, else slope * x."""
    np.copyto(out, np.where(x < 0, x * slope, x))


@kernel("Elu")
def elu(x: Array, out: Array, *, alpha: float) -> None:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    np.copyto(out, np.where(x < 0, np.expm1(np.minimum(x, 0)) * alpha, x))


@kernel("Selu")
def selu(x: Array, out: Array, *, alpha: float, gamma: float) -> None:
    """gamma * x where x is positive, else gamma * alpha * (exp(x) - 1)."""
    np.copyto(out, np.where(x <= 0, np.expm1(np.minimum(x, 0)) * (alpha * gamma), x * gamma))


@kernel("Celu")
def celu(x: Array, out: Array, *, alpha: float) -> None:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
    np.copyto(out, np.maximum(x, 0) + np.minimum(np.expm1(np.minimum(x, 0) / alpha) * alpha, 0))


@kernel("ThresholdedRelu")
def thresholded_relu(x: Array, out: Array, *, alpha: float) -> None:
    """x where it is above alpha, else 0."""
    np.copyto(out, np.where(x > alpha, x, x.dtype.type(0)))


@kernel("Softplus")
def softplus(x: Array, out: Array) -> None:
    """log(exp(x) + 1)."""
    np.logaddexp(x, x.dtype.type(0), out=out)


@kernel("Softsign")
def softsign(x: Array, out: Array) -> None:
    """x / (1 + |x|)."""
    np.divide(x, 1 + np.abs(x), out=out)


@kernel("Mish")
def mish(x: Array, out: Array) -> None:
    """x * tanh(softplus(x))."""
    np.multiply(x, np.tanh(np.logaddexp(x, x.dtype.type(0))), out=out)


@kernel("Erf")
def erf(x: Array, out: Array) -> None:
    """The error function."""
    np.copyto(out, _erf(x))


@kernel("Gelu")
def gelu(x: Array, out: Array, *, approximate: str) -> None:
    """x * P(X <= x) of the normal distribution; ``approximate="tanh"`` by a hyperbolic tangent."""
    if approximate == "tanh":
        weight = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
    else:
        weight = _erf(x * math.sqrt(0.5))
    weight += 1
    weight *= 0.5
    np.multiply(x, weight, out=out)


def _erf(x: Array) -> Array:
    """Returns the error function of float32 elements."""
    limited = np.clip(x, -4, 4)
    square = limited * limited
    above, below = _polynomial(_ERF_ABOVE, square), _polynomial(_ERF_BELOW, square)
    above *= limited
    above /= below
    return above


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    found = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        found += coefficient
        found *= x
    found += coefficients[-1]
    return found
