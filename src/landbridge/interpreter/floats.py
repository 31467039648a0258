"""Float arithmetic with the rounding of kernels: fused products and sums, and functions of f32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erf
from typing import Any, TypeAlias

import numpy as np

from landbridge.expansions.functions import FOR_LANES, LIMITED
from landbridge.expansions.terms import Term, TermBody

Array: TypeAlias = np.ndarray[Any, Any]

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
#: The mantissa bits of f64 that f32 lacks, and their value half-way between two numbers of f32.
_LOST = np.int64((1 << 29) - 1)
_HALF_WAY = np.int64(1 << 28)
#: Splits f64 into two halves of 26 bits (Dekker, 1971).
_SPLITTER = 134217729.0
_SMALLEST_SINGLE = 2.0**-126


def fused(a: Array, b: Array, c: Array) -> Array:
    """Returns ``a * b + c`` of f32, rounded once; of f64 within 2**-50 units in the last place of that."""
    return _fused_single(a, b, c) if np.result_type(a) == _SINGLE else _fused_double(a, b, c)


def _fused_single(a: Array, b: Array, c: Array) -> Array:
    """Returns the fused result of f32, computed in f64.

    The product is exact in f64, the sum is not: a rounded sum that is half-way between two f32 is corrected in the
    direction of its rounding error.
    """
    product = np.asarray(a, _DOUBLE) * np.asarray(b, _DOUBLE)
    addend = np.asarray(c, _DOUBLE)
    total = np.asarray(product + addend)
    with np.errstate(invalid="ignore"):
        doubtful = ((total.view(np.int64) & _LOST) == _HALF_WAY) | (np.abs(total) < _SMALLEST_SINGLE)
    if doubtful.any():
        lost = _lost_by_sum(product, addend, total)
        total = np.where(doubtful & np.isfinite(total) & (lost != 0), _to_odd(total, lost), total)
    return np.asarray(total.astype(_SINGLE))


def _lost_by_sum(a: Array, b: Array, total: Array) -> Array:
    """Returns ``a + b - total`` without error (Knuth's two-sum)."""
    other = total - a
    return np.asarray((a - (total - other)) + (b - other))


def _to_odd(total: Array, lost: Array) -> Array:
    """Returns ``total`` + ``lost`` rounded to odd: rounding that once more equals rounding the sum once."""
    bits = total.view(np.int64)
    beyond = (lost < 0) != (total < 0)
    return np.asarray(np.where(beyond, bits - 1, bits) | 1).view(_DOUBLE)


def _fused_double(a: Array, b: Array, c: Array) -> Array:
    product = np.asarray(a * b)
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    plain = np.asarray(product + c)
    total = plain + (error + _lost_by_sum(product, c, plain))
    return np.asarray(np.where(np.isfinite(total), total, plain))


def _halves(x: Array) -> tuple[Array, Array]:
    scaled = x * _SPLITTER
    high = scaled - (scaled - x)
    return high, x - high


class _ArrayBody(TermBody):
    """Computes Terms on arrays: the name of each is an array, its kind the dtype of that."""

    fused = exact = True

    def element(self, kind: Any) -> str:
        return f"{'f' if kind.kind == 'f' else 'i'}{kind.itemsize * 8}"

    def literal(self, value: float | int, kind: Any) -> Term:
        if kind.kind == "i":  # a literal may be given by its unsigned bits
            return self._term(np.asarray(value & ((1 << kind.itemsize * 8) - 1), np.uint64).astype(kind))
        return self._term(np.asarray(value, kind))

    def _term(self, array: Array) -> Term:
        return Term(self, array, array.dtype)

    def binary(self, opcode: str, a: Term, b: Term) -> Term:
        return self._term(np.asarray(_OPCODES[opcode](a.name, b.name)))

    def negate(self, a: Term) -> Term:
        return self._term(np.asarray(np.negative(a.name)))

    def compare(self, predicate: str, a: Term, b: Term) -> Term:
        return self._term(np.asarray(_PREDICATES[predicate](a.name, b.name)))

    def select(self, mask: Term, a: Term, b: Term) -> Term:
        return self._term(np.where(mask.name, a.name, b.name))

    def call(self, stem: str, operands: Sequence[Term]) -> Term:
        arrays = [operand.name for operand in operands]
        return self._term(np.asarray(_CALLS[stem](*arrays)))

    def convert(self, opcode: str, a: Term, element: str) -> Term:
        kind = np.dtype(f"{element[0]}{int(element[1:]) // 8}")
        return self._term(a.name.view(kind) if opcode == "bitcast" else a.name.astype(kind))


_OPCODES: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": np.left_shift, "ashr": np.right_shift,
}  # fmt: skip
_PREDICATES: dict[str, Callable[..., Array]] = {
    "olt": np.less, "ogt": np.greater, "oeq": np.equal, "slt": np.less, "sgt": np.greater, "eq": np.equal,
    "ne": np.not_equal, "one": lambda a, b: (a < b) | (a > b), "uge": lambda a, b: ~(a < b),
    "uno": lambda a, b: (a != a) | (b != b),
}  # fmt: skip
_CALLS: dict[str, Callable[..., Array]] = {
    "fma": fused, "exact_fma": fused, "fabs": np.abs, "trunc": np.trunc, "copysign": np.copysign,
    "sqrt": np.sqrt,
}  # fmt: skip

#: The functions of f64, by the names of the C library.
_OF_DOUBLE: dict[str, Callable[..., Any]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "cos": np.cos, "cosh": np.cosh,
    "erf": np.vectorize(erf, otypes=[np.float64]), "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "pow": np.power, "sin": np.sin,
    "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip


def function(name: str, *operands: Array) -> Array:
    """Returns the C library's function ``name`` of f32 by the arithmetic of kernels; of f64 by numpy.

    16-bit floats are computed in f32 and rounded once.
    """
    kind = np.result_type(operands[0])
    if kind == _DOUBLE:
        return np.asarray(_OF_DOUBLE[name](*operands))
    given = [np.asarray(x).astype(_SINGLE, copy=False) for x in operands]
    body = _ArrayBody()
    result = FOR_LANES[name](*(Term(body, x, _SINGLE) for x in given)).name
    limit = LIMITED.get(name)
    if limit is not None:
        beyond = ~(np.abs(given[0]) < limit)
        if beyond.any():
            wide = _OF_DOUBLE[name](*(x.astype(_DOUBLE) for x in given)).astype(_SINGLE)
            result = np.where(beyond, wide, result)
    return np.asarray(result).astype(kind, copy=False)
