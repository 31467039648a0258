"""What is known of the floats and integers that a body computes: between which bounds they lie, whether floats are
whole numbers, and whether they may be NaN or -0.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, copysign, floor, inf, isinf, isnan

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, Float32Type, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from landbridge.records import record

#: Whole numbers up to this one are exact in f32, and so are their sums up to it.
EXACT = 1 << 24
#: More than two roundings in f32 add to a magnitude, as a part of it, and as a number where it is denormal.
_ROUNDING, _DENORMAL = 1e-6, 1e-37
#: Less than the largest number of f32: a larger bound counts as infinity.
_LARGE = 3e38


@record(frozen=True)
class FloatRange:
    """A float lies between ``low`` and ``high``, which may be infinite.

    ``whole``: it is a whole number if it is finite. ``nan`` and ``negative_zero``: it may be that.
    """

    low: float
    high: float
    whole: bool = False
    nan: bool = False
    negative_zero: bool = False

    @property
    def is_finite(self) -> bool:
        """Returns whether it is neither infinite nor NaN."""
        return not (self.nan or isinf(self.low) or isinf(self.high))

    @property
    def is_exact(self) -> bool:
        """Returns whether it is a whole number, or NaN, whose sums with others of this kind are exact in f32."""
        return self.whole and self.low >= -EXACT and self.high <= EXACT


#: The predicate of ``arith.cmpf`` that holds unless an operand is NaN.
_ORDERED = arith.CMPF_COMPARISON_OPERATIONS.index("ord")
#: Nothing is known.
ANY = FloatRange(-inf, inf, False, True, True)


class Ranges:
    """The ranges of values of bodies, computed on demand. Ranges hold for f32; of wider floats, nothing is known."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, FloatRange] = {}

    def of(self, value: SSAValue) -> FloatRange:
        """Returns the range of a float."""
        found = self._known.get(value)
        if found is None:
            op = value.owner
            found = ANY
            if isinstance(op, Operation) and isinstance(value.type, Float32Type) and type(op) in _RULES:
                found = _RULES[type(op)](self, op)
            self._known[value] = found
        return found

    def of_integer(self, value: SSAValue, signed: bool) -> tuple[int, int]:
        """Returns the smallest and the largest number of an integer whose bits are read as ``signed`` says."""
        assert isinstance(value.type, IntegerType)
        low, high = _limits(value.type, signed)
        op = value.owner
        if isinstance(op, arith.ConstantOp):
            number = integer_constant(op, signed)
            return number, number
        found: tuple[int, int] | None = None
        if isinstance(op, arith.ExtSIOp | arith.ExtUIOp):
            found = self.of_integer(op.operands[0], isinstance(op, arith.ExtSIOp))
        elif isinstance(op, arith.FPToSIOp | arith.FPToUIOp) and isinstance(op, arith.FPToSIOp) == signed:
            # A number out of range becomes the bound, and NaN becomes 0.
            of = self.of(op.operands[0])
            first, last = floor(max(low, min(high, of.low))), ceil(max(low, min(high, of.high)))
            found = (min(first, 0), max(last, 0)) if of.nan else (first, last)
        elif isinstance(op, arith.AddiOp | arith.SubiOp):
            a, b = (self.of_integer(each, signed) for each in op.operands)
            found = (a[0] + b[0], a[1] + b[1]) if isinstance(op, arith.AddiOp) else (a[0] - b[1], a[1] - b[0])
        return found if found is not None and low <= found[0] and found[1] <= high else (low, high)


def _limits(kind: IntegerType, signed: bool) -> tuple[int, int]:
    bits = kind.width.data
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def integer_constant(op: arith.ConstantOp, signed: bool) -> int:
    """Returns the number that the bits of an integer constant are when they are read as ``signed`` says."""
    assert isinstance(op.value, IntegerAttr) and isinstance(op.value.type, IntegerType)
    bits = op.value.type.width.data
    number: int = op.value.value.data & (1 << bits) - 1
    return number - (1 << bits) if signed and number >> bits - 1 else number


def float_constant(value: SSAValue) -> float | None:
    """Returns the number of a constant float; None for any other value."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr) and isinstance(op.value.type, AnyFloat):
        return op.value.value.data
    return None


_Rule = Callable[[Ranges, Operation], FloatRange]


def _rounded(low: float, high: float, negative_zero: bool = True) -> FloatRange:
    """Returns the range of a number that lies between ``low`` and ``high`` before it is rounded; NaN where that is no
    number.
    """
    if isnan(low) or isnan(high):
        return ANY
    low, high = low - abs(low) * _ROUNDING - _DENORMAL, high + abs(high) * _ROUNDING + _DENORMAL
    return FloatRange(low if low > -_LARGE else -inf, high if high < _LARGE else inf, negative_zero=negative_zero)


def _constant(ranges: Ranges, op: Operation) -> FloatRange:
    value = float_constant(op.results[0])
    if value is None or isnan(value):
        return ANY
    return FloatRange(value, value, isinf(value) or value == int(value), False, value == 0 and copysign(1, value) < 0)


def _of_integer(signed: bool) -> _Rule:
    def rule(ranges: Ranges, op: Operation) -> FloatRange:
        source = op.operands[0]
        if not isinstance(source.type, IntegerType):
            return ANY
        low, high = ranges.of_integer(source, signed)
        if low >= -EXACT and high <= EXACT:
            return FloatRange(low, high, True)
        return FloatRange(low - abs(low) * _ROUNDING, high + abs(high) * _ROUNDING, True)

    return rule


def _sum(ranges: Ranges, op: Operation) -> FloatRange:
    a, b = (ranges.of(v) for v in op.operands)
    subtracts = isinstance(op, arith.SubfOp)
    low, high = (a.low - b.high, a.high - b.low) if subtracts else (a.low + b.low, a.high + b.high)
    whole = a.whole and b.whole  # beyond 2^24 every float is
    # Only zeros whose signs agree have a negative sum. What flushes denormals flushes no whole numbers.
    other = b.low <= 0 <= b.high if subtracts else b.negative_zero
    negative_zero = not whole or (a.negative_zero and other)
    nan = a.nan or b.nan or ((isinf(a.low) or isinf(a.high)) and (isinf(b.low) or isinf(b.high)))
    if whole and not nan and low >= -EXACT and high <= EXACT:
        return FloatRange(low, high, True, False, negative_zero)
    found = _rounded(low, high)
    return FloatRange(found.low, found.high, whole, nan or found.nan, negative_zero)


def _product(ranges: Ranges, op: Operation) -> FloatRange:
    a, b = (ranges.of(v) for v in op.operands)
    if not (a.is_finite and b.is_finite):
        return ANY
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return _rounded(min(ends), max(ends))


def _quotient(ranges: Ranges, op: Operation) -> FloatRange:
    a, divisor = ranges.of(op.operands[0]), float_constant(op.operands[1])
    if divisor is None or not a.is_finite or not 1e-30 < abs(divisor) < 1e30:
        return ANY
    ends = a.low / divisor, a.high / divisor
    return _rounded(min(ends), max(ends))


def _round(ranges: Ranges, op: Operation) -> FloatRange:
    a = ranges.of(op.operands[0])
    low, high = (x if isinf(x) else fit(x) for x, fit in ((a.low, floor), (a.high, ceil)))
    return FloatRange(low, high, True, a.nan, a.negative_zero or low < 0)


def _extremum(pick: Callable[[float, float], float]) -> _Rule:
    def rule(ranges: Ranges, op: Operation) -> FloatRange:
        a, b = (ranges.of(v) for v in op.operands)
        low, high = pick(a.low, b.low), pick(a.high, b.high)
        zero = (a.negative_zero or b.negative_zero) and low <= 0 <= high
        return FloatRange(low, high, a.whole and b.whole, a.nan or b.nan, zero)

    return rule


def _select(ranges: Ranges, op: Operation) -> FloatRange:
    condition, a, b = op.operands
    x, y = ranges.of(a), ranges.of(b)
    test = condition.owner
    tests_nan = (
        isinstance(test, arith.CmpfOp) and test.predicate.value.data == _ORDERED and test.lhs is a and test.rhs is a
    )
    return FloatRange(
        min(x.low, y.low),
        max(x.high, y.high),
        x.whole and y.whole,
        (x.nan and not tests_nan) or y.nan,
        x.negative_zero or y.negative_zero,
    )


_RULES: dict[type, _Rule] = {
    arith.ConstantOp: _constant,
    arith.SIToFPOp: _of_integer(signed=True),
    arith.UIToFPOp: _of_integer(signed=False),
    arith.AddfOp: _sum,
    arith.SubfOp: _sum,
    arith.MulfOp: _product,
    arith.DivfOp: _quotient,
    arith.MaximumfOp: _extremum(max),
    arith.MinimumfOp: _extremum(min),
    arith.SelectOp: _select,
    math.RoundEvenOp: _round,
    math.FloorOp: _round,
    math.CeilOp: _round,
    math.TruncOp: _round,
}
