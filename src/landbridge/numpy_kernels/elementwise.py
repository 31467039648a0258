"""Arithmetic, comparisons and logic of elements, with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from landbridge.array_type import Array
from landbridge.numpy_kernels.registry import kernel

_UNARY: dict[str, np.ufunc] = {
    "Abs": np.absolute,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "BitwiseNot": np.invert,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Exp": np.exp,
    "Floor": np.floor,
    "IsNaN": np.isnan,
    "Log": np.log,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Reciprocal": np.reciprocal,
    "Round": np.rint,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Tan": np.tan,
    "Tanh": np.tanh,
}
_BINARY: dict[str, np.ufunc] = {
    "Add": np.add,
    "And": np.logical_and,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "Or": np.logical_or,
    "Sub": np.subtract,
    "Xor": np.logical_xor,
}


def _unary(function: np.ufunc, x: Array, out: Array) -> None:
    function(x, out=out)


def _binary(function: np.ufunc, a: Array, b: Array, out: Array) -> None:
    function(a, b, out=out)


def _register(names: dict[str, np.ufunc], form: Callable[..., None]) -> None:
    for name, function in names.items():
        kernel(name)(partial(form, function))


_register(_UNARY, _unary)
_register(_BINARY, _binary)


@kernel("Div")
def div(a: Array, b: Array, out: Array) -> None:
    """Divides; integers towards zero, and by 1 where the divisor is 0, as compiled programs do."""
    if out.dtype.kind == "f":
        np.divide(a, b, out=out)
        return
    b = np.where(b == 0, b.dtype.type(1), b)
    quotient = np.floor_divide(a, b)
    if out.dtype.kind == "i":
        quotient += (quotient < 0) & (quotient * b != a)
    out[...] = quotient


@kernel("Mod")
def mod(a: Array, b: Array, out: Array, *, fmod: int) -> None:
    """The remainder, with the sign of ``b``, with ``fmod`` that of ``a``."""
    (np.fmod if fmod else np.mod)(a, b, out=out)


@kernel("Pow")
def power(a: Array, b: Array, out: Array) -> None:
    """``a`` to the power of ``b``, in the dtype of ``a``; integers to negative powers as 1 over the positive one."""
    if b.size == 1 and out.dtype.kind == "f" and float(b.reshape(-1)[0]) == 2.0:
        np.square(a, out=out)
    elif b.size == 1 and out.dtype.kind == "f" and float(b.reshape(-1)[0]) == 0.5:
        np.sqrt(a, out=out)
    elif a.dtype.kind in "iu" and b.dtype.kind == "i" and (b < 0).any():
        inverse = np.where(a == 0, np.iinfo(a.dtype).max, np.where(np.abs(a) == 1, a, 0))
        odd = np.where(b % 2 == 0, np.abs(inverse), inverse)
        np.copyto(out, np.where(b < 0, odd, np.power(a, np.maximum(b, 0))), casting="unsafe")
    else:
        np.copyto(out, np.power(a, b), casting="unsafe")


@kernel("Where")
def where(condition: Array, a: Array, b: Array, out: Array) -> None:
    """Elements of ``a`` where ``condition`` is true, else of ``b``."""
    out[...] = np.where(condition, a, b)


@kernel("Clip")
def clip(x: Array, low: Array | None, high: Array | None, out: Array) -> None:
    """Limits elements to at least ``low`` and at most ``high``, of one element each."""
    source = x
    if low is not None:
        source = np.maximum(source, low.reshape(()), out=out)
    if high is not None:
        source = np.minimum(source, high.reshape(()), out=out)
    if source is x:
        np.copyto(out, x)


@kernel("Cast")
def cast(x: Array, out: Array) -> None:
    """Converts elements to the dtype of ``out``; to bool, what is not zero is true."""
    np.copyto(out, x != 0 if out.dtype.kind == "b" else x, casting="unsafe")


@kernel("IsInf")
def is_inf(x: Array, out: Array, *, detect_negative: int, detect_positive: int) -> None:
    """Whether elements are infinite, with the signs that are looked for."""
    found = np.isinf(x)
    if not detect_negative:
        found &= x > 0
    if not detect_positive:
        found &= x < 0
    out[...] = found
