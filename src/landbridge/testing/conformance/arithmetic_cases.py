"""Computations that tests of arithmetic make on a device, with what numpy computes of the same numbers.

Inputs are spread evenly, with no random numbers. No result is denormal but those
of ``denormals``, which devices may flush to 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from landbridge.array_type import Array
from landbridge.dtypes import numpy_dtype
from landbridge.testing.conformance.computations import Computation

#: Elements: no multiple of 64.
COUNT = 1003
_GOLDEN = 0.6180339887498949  # its multiples, less their whole parts, are spread evenly

_Function = Callable[..., Any]
_erf = np.vectorize(math.erf, otypes=[np.float64])


def spread(low: float, high: float, dtype: str = "float32", shape: tuple[int, ...] = (COUNT,), seed: int = 1) -> Array:
    """Returns numbers from ``low`` to ``high``."""
    count = math.prod(shape)
    parts = (np.arange(1, count + 1) * _GOLDEN + seed * 0.1234567) % 1.0
    return (low + (high - low) * parts).reshape(shape).astype(numpy_dtype(dtype))


def _exponents(low: float, high: float, dtype: str, seed: int = 1) -> Array:
    """Returns numbers over 0, from ``2**low`` to ``2**high``."""
    return np.exp2(spread(low, high, "float64", seed=seed)).astype(numpy_dtype(dtype))


def _signs(array: Array, seed: int) -> Array:
    """Returns ``array`` with some of its signs changed."""
    return np.where(spread(0, 1, "float64", array.shape, seed) < 0.5, array, -array).astype(array.dtype)


def wide(array: Array) -> Array:
    """Returns floats with more precision, integers in 64 bits."""
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    return array.astype(np.longdouble if array.dtype == np.float64 else np.float64)


def _of(op: str, function: _Function, *inputs: Array, result: str = "", **attributes: Any) -> Computation:
    wanted = np.asarray(function(*map(wide, inputs)))
    return Computation(op, inputs, wanted, result or inputs[0].dtype.name, attributes)


def basic(dtype: str) -> list[Computation]:
    """Returns sums, products, quotients, roots, roundings and comparisons of floats."""
    reach = {"float16": 6, "float64": 300}.get(dtype, 60)  # of exponents, so that products and quotients are normal
    x = _signs(_exponents(-reach, reach, dtype), 2)
    y = _signs(_exponents(-reach, reach, dtype, seed=3), 4)
    moderate = spread(-50, 50, dtype)
    found = [
        _of("Add", np.add, moderate, moderate[::-1].copy()),
        _of("Mul", np.multiply, x, y),
        _of("Div", np.divide, x, y),
    ]
    if dtype in ("float16", "bfloat16"):
        return found
    found += [_of("Sqrt", np.sqrt, abs(x)), _of("Floor", np.floor, moderate)]
    if dtype == "float64":
        return found
    less = _of("Less", np.less, moderate, moderate[::-1].copy(), result="bool")
    return [*found, _of("Max", np.maximum, x, y), _of("Round", np.rint, moderate), less]


def functions(dtype: str) -> list[Computation]:
    """Returns transcendental functions of floats, over arguments whose results are normal numbers."""
    high = 9 if dtype == "float16" else 80
    found = [_of("Exp", np.exp, spread(-high, high, dtype))]
    if dtype in ("float16", "bfloat16"):
        return [*found, _of("Tanh", np.tanh, spread(-9, 9, dtype))]
    found.append(_of("Log", np.log, _exponents(-100, 100, dtype)))
    if dtype == "float64":
        return found
    powers = spread(0.3, 6, dtype), spread(-4, 4, dtype, seed=2)
    return [
        *found,
        _of("Sin", np.sin, spread(-1000, 1000, dtype)),
        _of("Tan", np.tan, spread(-1.5, 1.5, dtype)),
        _of("Atan", np.arctan, spread(-20, 20, dtype)),
        _of("Tanh", np.tanh, spread(-9, 9, dtype)),
        _of("Erf", _erf, spread(-4, 4, dtype)),
        _of("Sigmoid", lambda x: 1 / (1 + np.exp(-x)), spread(-9, 9, dtype)),
        _of("Pow", np.power, *powers),
    ]


def casts(dtype: str) -> list[Computation]:
    """Returns casts between ``dtype`` and float32: to fewer bits, halves go to the even number."""
    x = _signs(_exponents(-10, 10, "float32"), 2)
    half = numpy_dtype(dtype)
    step = float(np.spacing(np.ones((), half)))
    ties = (1 + step * (np.arange(64) + 0.5)).astype(np.float32)
    narrow = np.concatenate([x, ties]).astype(half)
    both = np.concatenate([x, ties])
    return [
        Computation("Cast", (both,), both.astype(half).astype(np.float64), dtype),
        Computation("Cast", (narrow,), narrow.astype(np.float64), "float32"),
    ]


def _towards_zero(a: Array, b: Array) -> Array:
    return np.asarray(np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)))


def integers(dtype: str, ops: Collection[str]) -> list[Computation]:
    """Returns those called ``ops`` of sums, products, quotients, remainders and shifts of integers."""
    info = np.iinfo(dtype)
    low, high = max(int(info.min), -(10**9)), min(int(info.max), 10**9)
    x, y = spread(low, high, dtype), spread(low, high, dtype, seed=5)
    small = spread(max(low, -11), 12, dtype, seed=3)
    by = np.where((small == 0) | (small == -1), 7, small).astype(x.dtype)  # these two have rules of their own
    bits = spread(0, info.bits, dtype, seed=6)

    def wrapped(function: _Function) -> _Function:
        return lambda *operands: function(*operands).astype(dtype).astype(np.int64)

    found = [
        _of("Add", wrapped(np.add), x, y),
        _of("Sub", wrapped(np.subtract), x, y),
        _of("Mul", wrapped(np.multiply), x, y),
        _of("Div", _towards_zero, x, by),
        _of("Mod", np.mod, x, by),
        _of("Greater", np.greater, x, y, result="bool"),
        _of("BitShift", lambda a, b: a >> b, x, bits, direction="RIGHT"),
    ]
    return [each for each in found if each.op in ops]


def bytes_products() -> list[Computation]:
    """Returns a product of matrices of int8 and uint8, and quantization to int8 and from uint8."""
    a, b = spread(-128, 128, "int8", (9, 37)), spread(0, 256, "uint8", (37, 21), seed=2)
    x, quantized = spread(-20, 20), spread(0, 256, "uint8")
    eighth, three, hundred = np.array(0.125, np.float32), np.array(3, np.int8), np.array(100, np.uint8)
    rounded = np.clip(np.rint(wide(x) / 0.125) + 3, -128, 127).astype(np.int64)
    restored = (wide(quantized) - 100) * 0.125
    return [
        _of("MatMulInteger", np.matmul, a, b, result="int32"),
        Computation("QuantizeLinear", (x,), rounded, "int8", constants=(eighth, three)),
        Computation("DequantizeLinear", (quantized,), restored, "float32", constants=(eighth, hundred)),
    ]


def _sum(x: Array, axis: int) -> Computation:
    wanted, condition = (each.sum(axis=axis, keepdims=True) for each in (wide(x), abs(wide(x))))
    return Computation("ReduceSum", (x,), wanted, x.dtype.name, {}, (np.array([axis], np.int64),), condition)


def _softmax(x: Array, axis: int) -> Computation:
    powers = np.exp(wide(x) - wide(x).max(axis=axis, keepdims=True))
    return Computation("Softmax", (x,), powers / powers.sum(axis=axis, keepdims=True), x.dtype.name, {"axis": axis})


def reductions(dtype: str = "float32") -> list[Computation]:
    """Returns sums, extremes, softmaxes and a product of matrices, of short rows and long ones, along each axis."""
    flat, tall = spread(-3, 5, dtype, (3, 5003)), spread(-4, 4, dtype, (301, 70), seed=2)
    if dtype != "float32":
        return [_softmax(spread(-1, 1, dtype, tall.shape), -1), _sum(tall, 0)]
    one = np.array([1], np.int64)
    a, b = spread(-1, 1, dtype, (33, 65)), spread(-1, 1, dtype, (65, 29), seed=4)
    return [
        _softmax(flat, -1),
        _sum(tall, 0),
        # Along an axis that is not the last one, kernels of a grid hand on partial results in scratch.
        _softmax(tall, 0),
        _sum(flat, 1),
        _sum(spread(-100, 100, "int32", (7, 501)), 1),
        Computation("ReduceMax", (flat,), wide(flat).max(axis=1, keepdims=True), dtype, {}, (one,)),
        Computation("ArgMax", (tall,), tall.argmax(axis=1)[:, np.newaxis], "int64", {"axis": 1}),
        Computation("MatMul", (a, b), wide(a) @ wide(b), dtype, condition=abs(wide(a)) @ abs(wide(b))),
    ]


def denormals() -> list[Computation]:
    """Returns products and sums of float32 whose results, or operands, are denormal numbers."""
    small, tiny = spread(1e-25, 2e-25), spread(1e-15, 9e-15, seed=3)
    x, y = spread(1e-41, 9e-40), spread(1e-41, 9e-40, seed=5)
    return [_of("Mul", np.multiply, small, tiny), _of("Add", np.add, x, y), _of("Mul", np.multiply, x, abs(x) * 0 + 4)]


def infinities() -> list[Computation]:
    """Returns operators of float32 on infinite operands, and with infinite results."""
    x, infinite = spread(-50, 50), _signs(np.full(COUNT, np.inf, np.float32), 3)
    return [
        _of("Add", np.add, infinite, x),
        _of("Max", np.maximum, infinite, x),
        _of("Exp", np.exp, infinite),
        _of("Less", np.less, infinite, x, result="bool"),
    ]


def bounds() -> list[Computation]:
    """Returns extremes of float32 with infinite constants, which leave every number as it is, and of long rows."""
    x, rows = spread(-3e38, 3e38), spread(-3e38, -1e38, shape=(5, 301))
    low, high = (np.full(COUNT, bound, np.float32) for bound in (-np.inf, np.inf))
    one = np.array([1], np.int64)
    return [
        Computation("Max", (x,), wide(x), "float32", constants=(low,)),
        Computation("Min", (x,), wide(x), "float32", constants=(high,)),
        Computation("ReduceMax", (rows,), wide(rows).max(axis=1, keepdims=True), "float32", {}, (one,)),
        Computation("ReduceMin", (-rows,), wide(-rows).min(axis=1, keepdims=True), "float32", {}, (one,)),
    ]


def many_rows(count: int) -> Computation:
    """Returns a softmax of so many rows: kernels of a grid have a workgroup for each."""
    return _softmax(spread(-4, 4, "float32", (count, 33)), -1)
