"""Arithmetic and functions of single elements."""

from __future__ import annotations

import math

import numpy as np

from landbridge.dtypes import dtype
from landbridge.ir.scalar_dtypes import float_limits, is_float
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import Handler, kernel
from landbridge.ops.accuracy import EXACT, ROUNDED, Accuracy, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import one_of
from landbridge.ops.rules import rules
from landbridge.ops.unread import unread


def _binary(op_type: str, kind: str) -> None:
    @rules("A: &S", "B: &S")
    @kernel("", op_type)
    @unread()
    @accuracy(ROUNDED)
    def handler(c: OpContext, a: Operand, b: Operand) -> Operand:
        return c.elementwise(kind, [a, b], lambda s, x, y: s.binary(kind, x, y), depends_on=())


for _type, _kind in {"Add": "add", "Sub": "sub", "Mul": "mul"}.items():
    _binary(_type, _kind)


def _safe_divisor(s: ScalarBuilder, y: Value) -> Value:
    """Returns an integer divisor without the values that trap on some processors: 0, and -1 under the lowest
    integer.
    """
    traps = y.eq(0) if y.dtype.startswith("uint") else y.eq(0) | y.eq(-1)
    return s.select(traps, s.const(1, y.dtype), y)


@rules("A: &S", "B: &S")
@kernel("", "Div")
@unread()
@accuracy(ROUNDED)
def divide(c: OpContext, a: Operand, b: Operand) -> Operand:
    """Computes ``a / b``; integers truncate, and division by 0 gives the dividend."""

    def body(s: ScalarBuilder, x: Value, y: Value) -> Value:
        if is_float(x.dtype):
            return x / y
        quotient = x / _safe_divisor(s, y)
        return quotient if y.dtype.startswith("uint") else s.select(y.eq(-1), -x, quotient)

    return c.elementwise("div", [a, b], body, depends_on=())


def _variadic(op_type: str, kind: str, declared: Accuracy) -> None:
    @rules("*data: &S")
    @kernel("", op_type)
    @accuracy(declared)
    def handler(c: OpContext, *operands: Operand) -> Operand:
        def body(s: ScalarBuilder, first: Value, *rest: Value) -> Value:
            for value in rest:
                first = s.binary(kind, first, value)
            return first

        return operands[0] if len(operands) == 1 else c.function(kind, operands, body, depends_on=())


_variadic("Sum", "add", Accuracy(1, sums=True, note="one eps for each addition"))
_variadic("Max", "max", EXACT)
_variadic("Min", "min", EXACT)


@rules("*data: &S")
@kernel("", "Mean")
@accuracy(ulp=1.5, sums=True, note="one eps for each addition, a half for the division")
def mean(c: OpContext, *operands: Operand) -> Operand:
    """Computes the mean of the inputs; infinite where their sum is."""

    def body(s: ScalarBuilder, first: Value, *rest: Value) -> Value:
        for value in rest:
            first = first + value
        return first * (1.0 / len(operands))

    return operands[0] if len(operands) == 1 else c.function("mean", operands, body)


def _unary(op_type: str, function: str, declared: Accuracy) -> None:
    @rules("X: ...")
    @kernel("", op_type)
    @accuracy(declared)
    def handler(c: OpContext, x: Operand) -> Operand:
        if not is_float(c.dtype(x)):
            return x  # rounding an integer changes nothing; the other functions only take floats
        return c.elementwise(function, [x], lambda s, v: s.math(function, v), depends_on=())


for _type, _function, _ulp in [
    ("Acos", "acos", 1.5), ("Acosh", "acosh", 3), ("Asin", "asin", 1.5), ("Asinh", "asinh", 2.5), ("Atan", "atan", 2),
    ("Atanh", "atanh", 2.5), ("Ceil", "ceil", 0), ("Cos", "cos", 2), ("Cosh", "cosh", 2), ("Erf", "erf", 1.5),
    ("Exp", "exp", 1.5), ("Floor", "floor", 0), ("Log", "log", 1.5), ("Round", "round_even", 0), ("Sin", "sin", 2),
    ("Sinh", "sinh", 2.5), ("Sqrt", "sqrt", 0.5), ("Tan", "tan", 2.5), ("Tanh", "tanh", 2.5),
]:  # fmt: skip
    _unary(_type, _function, Accuracy(_ulp, float64=2.5 if _function == "log" else None))


@rules("X: ...")
@kernel("", "Abs")
@accuracy(EXACT)
def absolute(c: OpContext, x: Operand) -> Operand:
    """Computes ``|x|``."""
    dtype = c.dtype(x)
    if is_float(dtype):
        return c.elementwise("abs", [x], lambda s, v: s.math("abs", v))
    if dtype.startswith("uint"):
        return x
    return c.elementwise("abs", [x], lambda s, v: s.select(v < 0, -v, v))


@rules("X: ...")
@kernel("", "Neg")
@accuracy(EXACT)
def negative(c: OpContext, x: Operand) -> Operand:
    """Computes ``-x``."""
    return c.elementwise("neg", [x], lambda s, v: -v, depends_on=())


@rules("X: ...")
@kernel("", "Reciprocal")
@accuracy(ROUNDED)
def reciprocal(c: OpContext, x: Operand) -> Operand:
    """Computes ``1 / x``."""
    return c.elementwise("reciprocal", [x], lambda s, v: 1.0 / v, depends_on=())


@rules("X: ...")
@kernel("", "Sign")
@accuracy(EXACT)
def sign(c: OpContext, x: Operand) -> Operand:
    """Returns the sign, -1, 0 or 1; NaN stays."""

    def body(s: ScalarBuilder, v: Value) -> Value:
        dtype = v.dtype
        negative = s.const(0 if dtype.startswith("uint") else -1, dtype)
        small = s.select(v < 0, negative, v)
        return s.select(v > 0, s.const(1, dtype), small)

    return c.elementwise("sign", [x], body)


@rules("X: ...")
@kernel("", "IsNaN")
@accuracy(EXACT)
def is_nan(c: OpContext, x: Operand) -> Operand:
    """Returns whether an element is NaN."""
    return c.elementwise("isnan", [x], lambda s, v: v.ne(v), "bool", depends_on=())


@rules("X: ...")
@kernel("", "IsInf")
@accuracy(EXACT)
def is_inf(c: OpContext, x: Operand) -> Operand:
    """Returns whether an element is infinite, of the requested signs."""
    positive, negative = c.attribute("detect_positive", 1), c.attribute("detect_negative", 1)

    def body(s: ScalarBuilder, v: Value) -> Value:
        if positive and negative:
            return s.math("abs", v).eq(math.inf)
        if positive or negative:
            return v.eq(math.inf if positive else -math.inf)
        return s.const(False, "bool")

    return c.elementwise("isinf", [x], body, "bool")


@rules("X: &S", "Y: &S")
@kernel("", "Pow")
@accuracy(ulp=1, targets={"vulkan": 1.5, "opencl": 1.5}, note="of f64 by the target's own function")
def power(c: OpContext, base: Operand, exponent: Operand) -> Operand:
    """Computes ``base ** exponent`` in the base's dtype; integers wrap as their products do."""
    dtype = c.dtype(base)

    def body(s: ScalarBuilder, x: Value, e: Value) -> Value:
        if is_float(dtype):
            return s.pow(x, s.cast(e, dtype))
        if is_float(e.dtype):
            return s.cast(s.pow(s.cast(x, "float64"), s.cast(e, "float64")), dtype)
        return _integer_power(s, x, e, _exponent_bits(c, exponent))

    return _simple_power(c, base, exponent) or c.elementwise("pow", [base, exponent], body)


def _exponent_bits(c: OpContext, exponent: Operand) -> int:
    """Returns how many bits an integer exponent may have: those of the largest, where it is constant."""
    if isinstance(exponent, np.ndarray):
        return int(np.max(exponent, initial=0)).bit_length()
    kind = c.dtype(exponent)
    return 8 * dtype(kind).itemsize - (not kind.startswith("uint"))


def _integer_power(s: ScalarBuilder, x: Value, e: Value, steps: int) -> Value:
    """Computes ``x ** e`` of integers by squaring, for exponents of at most ``steps`` bits.

    A negative exponent gives the power truncated to an integer; of 0 it gives the largest number of the dtype.
    """
    result, square = s.const(1, x.dtype), x
    for k in range(steps):
        is_set = (s.binary("shr", e, k) & 1).ne(0)
        result = s.select(is_set, result * square, result)
        square = square * square
    if e.dtype.startswith("uint"):
        return result
    inverse = s.select(x.eq(0), int(float_limits(x.dtype)[1]), s.select(x.eq(1), s.const(1, x.dtype), 0))
    if not x.dtype.startswith("uint"):
        alternating = s.select((e & 1).ne(0), s.const(-1, x.dtype), 1)
        inverse = s.select(x.eq(-1), alternating, inverse)
    return s.select(e < 0, inverse, result)


def _simple_power(c: OpContext, base: Operand, exponent: Operand) -> Operand | None:
    """Returns ``base ** exponent`` without a call of ``pow``, for a constant exponent of one element that is 1, 2 or 3,
    or 0.5 of a float base; else None.
    """
    if not isinstance(exponent, np.ndarray) or exponent.size != 1 or exponent.ndim > c.rank(base):
        return None
    e = exponent.item()
    if e == 1:
        return base
    if e in (2, 3):
        return c.function("pow", [base], lambda s, x: x * x if e == 2 else x * x * x, depends_on=(int(e),))
    if e == 0.5 and is_float(c.dtype(base)):
        # As C's pow: of -infinity infinite, of -0 a positive 0.
        return c.function(
            "sqrt", [base], lambda s, x: s.select(x.eq(-math.inf), math.inf, s.sqrt(s.select(x.eq(0), 0.0, x)))
        )
    return None


@rules("A: &S", "B: &S")
@kernel("", "Mod")
@accuracy(ulp=0.5, note="exact with ``fmod``")
def modulo(c: OpContext, a: Operand, b: Operand) -> Operand:
    """Computes the remainder: with the divisor's sign, or the dividend's when ``fmod`` is set."""
    fmod = c.attribute("fmod", 0)

    def body(s: ScalarBuilder, x: Value, y: Value) -> Value:
        rest = s.binary("rem", x, y if is_float(x.dtype) else _safe_divisor(s, y))
        if fmod or x.dtype.startswith("uint"):
            return rest
        wrong = rest.ne(0) & ((rest < 0).ne(y < 0))
        return s.select(wrong, rest + y, rest)

    return c.function("mod", [a, b], body)


@rules("X: &S", "Y: &S", attributes={"direction": one_of("LEFT", "RIGHT")})
@kernel("", "BitShift")
@accuracy(EXACT)
def bit_shift(c: OpContext, a: Operand, b: Operand) -> Operand:
    """Computes ``a`` shifted by ``b`` bits in ``direction``."""
    kind = "shl" if c.attribute("direction") == "LEFT" else "shr"

    def shifted(s: ScalarBuilder, x: Value, y: Value) -> Value:
        # arith leaves shifts by the width or more, or by negative amounts, undefined: the result is the bits shifted
        # in.
        signed = not x.dtype.startswith("uint")
        bits = 8 * dtype(x.dtype).itemsize
        amount = s.cast(y, f"uint{bits}")
        most = s.cast(s.minimum(amount, bits - 1), x.dtype)
        within = s.binary(kind, x, most)
        return within if signed and kind == "shr" else s.select(amount < bits, within, 0)

    return c.elementwise(kind, [a, b], shifted)


@rules("X: ...")
@kernel("", "BitwiseNot")
@accuracy(EXACT)
def bitwise_not(c: OpContext, x: Operand) -> Operand:
    """Computes ``~x``."""
    return c.elementwise("not", [x], lambda s, v: v ^ -1)


def _bitwise(kind: str) -> Handler:
    @accuracy(EXACT)
    def handler(c: OpContext, a: Operand, b: Operand) -> Operand:
        return c.elementwise(kind, [a, b], lambda s, x, y: s.binary(kind, x, y), depends_on=())

    return handler


for _type, _kind in {"And": "and", "Or": "or", "Xor": "xor"}.items():
    rules("A: &S", "B: &S")(kernel("", _type, f"Bitwise{_type}")(_bitwise(_kind)))


@rules("X: ...")
@kernel("", "Not")
@accuracy(EXACT)
def logical_not(c: OpContext, x: Operand) -> Operand:
    """Computes ``not x``."""
    return c.elementwise("not", [x], lambda s, v: s.logical_not(v))
