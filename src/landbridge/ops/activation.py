"""Activations: functions of one element with parameters, each one PrimFunc."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import float_limits, is_float, saturation
from landbridge.ir.scalars import Number, ScalarBuilder, Value
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, ROUNDED, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import axis_of, holds, one_of
from landbridge.ops.reduce import past_positions, position_dtype
from landbridge.ops.rules import rules


@rules("X: ...")
@kernel("", "Relu")
@accuracy(EXACT)
def relu(c: OpContext, x: Operand) -> Operand:
    """Computes ``max(x, 0)``."""
    return c.elementwise("relu", [x], lambda s, v: s.maximum(v, 0))


@rules("X: ...")
@kernel("", "Sigmoid")
@accuracy(ulp=3)
def sigmoid(c: OpContext, x: Operand) -> Operand:
    """Computes ``1 / (1 + exp(-x))``."""
    return c.function("sigmoid", [x], lambda s, v: s.sigmoid(v), depends_on=())


@rules("X: ...")
@kernel("", "LeakyRelu")
@accuracy(ROUNDED)
def leaky_relu(c: OpContext, x: Operand) -> Operand:
    """Computes ``x``, times ``alpha`` below 0."""
    alpha = c.attribute("alpha", 0.01)
    return c.function("leaky_relu", [x], lambda s, v: s.select(v < 0, v * alpha, v))


@rules("X: *S", "slope: <S")
@kernel("", "PRelu")
@accuracy(ROUNDED)
def prelu(c: OpContext, x: Operand, slope: Operand) -> Operand:
    """Computes ``x``, times ``slope`` below 0."""
    slope = c.repeated(slope, c.shape(x), "slope")
    return c.elementwise("prelu", [x, slope], lambda s, v, a: s.select(v < 0, v * a, v))


@rules("X: ...")
@kernel("", "ThresholdedRelu")
@accuracy(EXACT)
def thresholded_relu(c: OpContext, x: Operand) -> Operand:
    """Computes ``x`` above ``alpha``, else 0."""
    alpha = c.attribute("alpha", 1.0)
    return c.function("thresholded_relu", [x], lambda s, v: s.select(v > alpha, v, 0))


@rules("X: ...")
@kernel("", "Elu")
@accuracy(ulp=3)
def elu(c: OpContext, x: Operand) -> Operand:
    """Computes ``alpha * (exp(x) - 1)`` below 0."""
    alpha = c.attribute("alpha", 1.0)
    return c.function("elu", [x], lambda s, v: s.select(v < 0, s.math("expm1", v) * alpha, v))


@rules("X: ...")
@kernel("", "Selu")
@accuracy(ulp=3)
def selu(c: OpContext, x: Operand) -> Operand:
    """Computes the scaled Elu."""
    alpha = c.attribute("alpha", 1.67326319217681884765625)
    gamma = c.attribute("gamma", 1.05070102214813232421875)
    return c.function("selu", [x], lambda s, v: s.select(v < 0, s.math("expm1", v) * (alpha * gamma), v * gamma))


@rules("X: ...", attributes={"alpha": holds("it != 0")})
@kernel("", "Celu")
@accuracy(ulp=3)
def celu(c: OpContext, x: Operand) -> Operand:
    """Computes ``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``."""
    alpha = c.attribute("alpha", 1.0)
    return c.function("celu", [x], lambda s, v: s.select(v < 0, s.math("expm1", v / alpha) * alpha, v))


@rules("X: ...")
@kernel("", "HardSigmoid")
@accuracy(ulp=1, sums=True, note="of ``alpha * x`` and ``beta``")
def hard_sigmoid(c: OpContext, x: Operand) -> Operand:
    """Computes ``alpha * x + beta``, clamped to 0 and 1."""
    alpha, beta = c.attribute("alpha", 0.2), c.attribute("beta", 0.5)
    return c.function("hard_sigmoid", [x], lambda s, v: s.minimum(s.maximum(v * alpha + beta, 0.0), 1.0))


@rules("X: ...")
@kernel("", "HardSwish")
@accuracy(ulp=2, sums=True, note="of ``x * x / 6`` and ``x / 2``")
def hard_swish(c: OpContext, x: Operand) -> Operand:
    """Computes ``x * min(max(x / 6 + 1/2, 0), 1)``."""
    return c.function("hard_swish", [x], lambda s, v: v * s.minimum(s.maximum(v * (1 / 6) + 0.5, 0.0), 1.0))


@rules("X: ...")
@kernel("", "Swish")
@accuracy(ulp=4, least=512, note="where ``alpha * x`` is exact; else as many ulp more as its magnitude")
def swish(c: OpContext, x: Operand) -> Operand:
    """Computes ``x * sigmoid(alpha * x)``."""
    alpha = c.attribute("alpha", 1.0)
    return c.function("swish", [x], lambda s, v: v * s.sigmoid(v * alpha))


def softplus_of(s: ScalarBuilder, v: Value) -> Value:
    """Computes ``log(1 + exp(v))`` without overflow."""
    return s.maximum(v, 0.0) + s.math("log1p", s.exp(-s.math("abs", v)))


@rules("X: ...")
@kernel("", "Softplus")
@accuracy(ulp=2)
def softplus(c: OpContext, x: Operand) -> Operand:
    """Computes ``log(1 + exp(x))``."""
    return c.function("softplus", [x], softplus_of)


@rules("X: ...")
@kernel("", "Mish")
@accuracy(ulp=4, least=512)
def mish(c: OpContext, x: Operand) -> Operand:
    """Computes ``x * tanh(softplus(x))``, as ``x n / (n + 2)`` with ``n = exp(2 x) + 2 exp(x)``."""

    def body(s: ScalarBuilder, v: Value) -> Value:
        e = s.exp(s.minimum(v, saturation(v.dtype)))
        n = e * (e + 2.0)
        return v * (n / (n + 2.0))

    return c.function("mish", [x], body)


@rules("X: ...")
@kernel("", "Softsign")
@accuracy(ulp=1.5)
def softsign(c: OpContext, x: Operand) -> Operand:
    """Computes ``x / (1 + |x|)``."""
    return c.function("softsign", [x], lambda s, v: v / (s.math("abs", v) + 1.0))


@rules("X: ...", attributes={"approximate": one_of("none", "tanh")})
@kernel("", "Gelu")
@accuracy(ulp=2, sums=True, note="of ``x``")
def gelu(c: OpContext, x: Operand) -> Operand:
    """Computes ``x`` times the cumulative normal distribution, or its tanh approximation."""
    if c.attribute("approximate", "none") == "tanh":
        k = math.sqrt(2 / math.pi)
        return c.function("gelu", [x], lambda s, v: v * 0.5 * (s.math("tanh", (v + v * v * v * 0.044715) * k) + 1.0))
    return c.function("gelu", [x], lambda s, v: v * 0.5 * (s.math("erf", v * math.sqrt(0.5)) + 1.0))


@rules("X: ...")
@kernel("", "Shrink")
@accuracy(ROUNDED)
def shrink(c: OpContext, x: Operand) -> Operand:
    """Computes ``x + bias`` below ``-lambd``, ``x - bias`` above ``lambd``, else 0."""
    bias, lambd = c.attribute("bias", 0.0), c.attribute("lambd", 0.5)

    def body(s: ScalarBuilder, v: Value) -> Value:
        w = v if is_float(v.dtype) else s.cast(v, "float32")
        return s.cast(s.select(w < -lambd, w + bias, s.select(w > lambd, w - bias, 0.0)), v.dtype)

    return c.function("shrink", [x], body)


@rules("input: ...", "min?: () | 1", "max?: () | 1")
@kernel("", "Clip")
@accuracy(EXACT)
def clip(c: OpContext, x: Operand, low: Operand | None = None, high: Operand | None = None) -> Operand:
    """Clamps ``x`` to bounds: before opset 11 attributes, by default the ends of float32; optional scalar inputs
    since.
    """
    dtype = c.dtype(x)
    bounds: list[Operand | None] = [low, high]
    if c.opset < 11:
        largest = float(np.finfo(np.float32).max)
        given = [c.attribute("min", -largest), c.attribute("max", largest)]
        bounds = [_bound(v, dtype) for v in given]
    operands: list[Operand] = [x]
    for bound in bounds:
        if bound is not None:
            operands.append(c.cast(c.reshape(bound, ()), dtype))

    def body(s: ScalarBuilder, v: Value, *limits: Number) -> Value:
        left = iter(limits)
        if bounds[0] is not None:
            v = s.maximum(v, next(left))
        return v if bounds[1] is None else s.minimum(v, next(left))

    return x if len(operands) == 1 else c.elementwise("clip", operands, body)


def _bound(value: float, dtype: str) -> np.ndarray[Any, Any]:
    """Returns an attribute as a number of ``dtype``, the nearest finite one if it is finite."""
    kind = numpy_dtype(dtype)
    largest = float(np.finfo(kind).max)
    return np.asarray(min(max(value, -largest), largest) if math.isfinite(value) else value, kind)


@rules("input: _ ...", attributes={"axis": axis_of("len(input)")})
@kernel("", "Hardmax", since=13)
@accuracy(EXACT)
def hardmax(c: OpContext, x: Operand) -> Operand:
    """Computes 1 at the first maximum along ``axis``, else 0."""
    axis = c.axis(c.attribute("axis", -1), c.rank(x))
    return first_maximum(c, x, axis)


def first_maximum(c: OpContext, x: Operand, axis: int) -> Operand:
    """Returns 1 where an element is the first of the largest along ``axis``, else 0."""
    shape = c.shape(x)
    others = [a for a in range(len(shape)) if a != axis]
    loops = [shape[a] for a in others]
    location = [others.index(a) if a != axis else len(others) for a in range(len(shape))]
    dtype, at = c.dtype(x), position_dtype(shape[axis])

    def build(p: PrimBuilder) -> None:
        best, where = p.temp(loops, dtype), p.temp(loops, at)
        n = len(loops)
        p.generic(
            "p" * n + "r",
            [*loops, shape[axis]],
            [(p.inputs[0], lambda *d: [d[i] for i in location])],
            [(best, lambda *d: d[:n])],
            lambda s, acc, v: s.maximum(acc, v),
            init=float_limits(dtype)[0],
        )
        p.generic(
            "p" * n + "r",
            [*loops, shape[axis]],
            [(p.inputs[0], lambda *d: [d[i] for i in location]), (best, lambda *d: d[:n])],
            [(where, lambda *d: d[:n])],
            lambda s, acc, v, m: s.minimum(
                acc, s.select(s.matches(v, m), s.cast(s.index(n), at), s.const(shape[axis], at))
            ),
            init=past_positions(shape[axis]),
        )
        p.generic(
            "p" * (n + 1),
            [*loops, shape[axis]],
            [(where, lambda *d: d[:n])],
            [(p.outputs[0], lambda *d: [d[i] for i in location])],
            lambda s, w: s.select(w.eq(s.cast(s.index(n), at)), s.const(1, dtype), 0),
        )

    return c.g.call("hardmax", [c.value(x)], [(shape, dtype)], build)[0]
