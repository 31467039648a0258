"""Whole numbers: integers that bodies convert to floats and back stay floats, and what conversions repeat is removed.

A quantized network rounds, shifts, clamps and converts to an integer of eight bits, and the next node converts that
back to a float. Fusion brings both into one body, where the integer has no reader but conversions. All numbers are
whole and below 2^24 there, so floats hold them exactly, and results are equal to the bit. A body becomes a third as
long, which lowering, LLVM and runs gain from.

Scales and zero points are then constants of float operations, of which kernels with shared code may have different ones
(``passes/lower/shared_code.py``).
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, linalg, math
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import Float32Type, FloatAttr, IntegerAttr, IntegerType, f32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.analysis.float_ranges import EXACT, Ranges, float_constant, integer_constant
from landbridge.ir.module import IRModule
from landbridge.ir.traversal import operations, operations_of
from landbridge.passes.registry import register_pass
from landbridge.passes.rewrites import rewrite

#: Each operation is rounded by itself, and zeros have signs.
_STRICT = FastMathFlagsAttr("none")
#: Numbers nearer than this to a whole number, before the product that gives them is rounded, are rounded to it. Larger
#: numbers than the second have too few digits after the point for that.
_ROUNDS_BACK, _HAS_FRACTIONS = 0.4, EXACT >> 6
_ROUNDS = (math.RoundEvenOp, math.FloorOp, math.CeilOp, math.TruncOp)


@register_pass("whole_numbers")
def whole_numbers(module: IRModule) -> None:
    """Compute with floats where integers are only converted from floats and back."""
    for function in module.prims().values():
        for op in operations_of(function, linalg.ops.GenericOp):
            _Body(op.regions[0].block).simplify()


class _Body:
    """Rewrites ``block``, whose operations on values are simplified in order; those that nothing reads are erased."""

    def __init__(self, block: Block) -> None:
        self._block, self._ranges = block, Ranges()
        #: The floats that integers are, by the integer and whether its bits are read as signed; None where it has none.
        self._floats: dict[tuple[SSAValue, bool], SSAValue | None] = {}
        self._numbers: dict[int, SSAValue] = {}
        #: Sums and differences of two floats, by whether they are sums and by the terms, constants as numbers.
        self._sums: dict[tuple[bool, SSAValue, SSAValue | float], SSAValue] = {}
        self._before: Operation | None = None

    def simplify(self) -> None:
        """Simplify the block."""
        if not any(type(op) in _CONVERSIONS for op in self._block.ops):
            return
        for op in operations(self._block):
            rule = _RULES.get(type(op))
            self._before = op
            if rule is not None and (simpler := rule(self, op)) is not None:
                op.results[0].replace_all_uses_with(simpler)
        self._drop_unused()

    @rewrite("whole_numbers.unused", "operations whose results nothing reads are removed")
    def _drop_unused(self) -> None:
        for op in reversed(operations(self._block)):
            if type(op) in _PURE and all(r.first_use is None for r in op.results):
                Rewriter.erase_op(op)

    # Rules: each returns the value to use in the place of an operation's result, None if it stays ---------------------

    @rewrite("whole_numbers.to_float", "an integer that was converted from a float is that float")
    def to_float(self, op: Operation) -> SSAValue | None:
        """An integer that is a float already."""
        if not isinstance(op.results[0].type, Float32Type):
            return None
        return self._float(op.operands[0], isinstance(op, arith.SIToFPOp))

    @rewrite("whole_numbers.extended", "a constant or converted integer gets more bits at once")
    def extended(self, op: Operation) -> SSAValue | None:
        """A constant, or what a float was converted to, with more bits."""
        source, kind, signed = op.operands[0], op.results[0].type, isinstance(op, arith.ExtSIOp)
        if not isinstance(kind, IntegerType):
            return None
        if isinstance(source.owner, arith.ConstantOp):
            number = integer_constant(source.owner, signed)
            return self._add(arith.ConstantOp(IntegerAttr(number, kind), kind))
        if isinstance(source.owner, arith.FPToSIOp | arith.FPToUIOp) and kind.width.data > 16:
            number_of = self._float(source, signed)
            return None if number_of is None else self._add(arith.FPToSIOp(number_of, kind))
        return None

    @rewrite("whole_numbers.rounded", "a whole number is not rounded again")
    def rounded(self, op: Operation) -> SSAValue | None:
        """A whole number that is rounded, also after a product with almost 1: scales of two quantizations."""
        (x,) = op.operands
        if not isinstance(x.type, Float32Type):
            return None
        if self._ranges.of(x).whole:
            return x
        before = x.owner
        if not (isinstance(op, math.RoundEvenOp) and isinstance(before, arith.MulfOp | arith.DivfOp)):
            return None
        of, factor = self._ranges.of(before.operands[0]), float_constant(before.operands[1])
        if factor is None or not of.is_exact or not 0.5 < factor < 2:
            return None
        largest = max(abs(of.low), abs(of.high))
        if largest > _HAS_FRACTIONS or largest * max(abs(factor - 1), abs(1 / factor - 1)) >= _ROUNDS_BACK:
            return None
        return before.operands[0]

    @rewrite("whole_numbers.product", "a whole number is not multiplied by 1")
    def product(self, op: Operation) -> SSAValue | None:
        """A whole number times 1: others may be denormal or a product that a sum fuses, which stay."""
        for x, factor in (tuple(op.operands), tuple(reversed(op.operands))):
            if float_constant(factor) == 1 and self._ranges.of(x).whole:
                return x
        return None

    @rewrite("whole_numbers.added", "a sum with 0, or with what was subtracted, is removed")
    def added(self, op: Operation) -> SSAValue | None:
        """A whole number plus a zero that changes no sign, or plus what was subtracted from it."""
        for x, other in (tuple(op.operands), tuple(reversed(op.operands))):
            term, of = float_constant(other), self._ranges.of(x)
            if term is None or not of.is_exact:
                continue
            if term == 0 and not of.negative_zero:
                return x
            before = x.owner
            if isinstance(before, arith.SubfOp) and float_constant(before.rhs) == term:
                number = self._ranges.of(before.lhs)
                if number.is_exact and not number.negative_zero and float(term).is_integer() and abs(term) <= EXACT:
                    return before.lhs
        return None

    @rewrite("whole_numbers.extremum", "a bound that changes no number is removed")
    def extremum(self, op: Operation) -> SSAValue | None:
        """A number that a bound does not change; NaN stays NaN."""
        lower = isinstance(op, arith.MaximumfOp)
        for x, bound in (tuple(op.operands), tuple(reversed(op.operands))):
            limit = float_constant(bound)
            if limit is None or not isinstance(x.type, Float32Type):
                continue
            of = self._ranges.of(x)
            if (limit != 0 or not of.negative_zero) and (of.low >= limit if lower else of.high <= limit):
                return x
        return None

    # Integers as floats -----------------------------------------------------------------------------------------------

    def _float(self, value: SSAValue, signed: bool) -> SSAValue | None:
        """Returns an f32 that is the number of the integer ``value``, never NaN or -0; None where none is known."""
        key = value, signed
        if key not in self._floats:
            self._floats[key] = self._new_float(value, signed)
        return self._floats[key]

    def _new_float(self, value: SSAValue, signed: bool) -> SSAValue | None:
        op = value.owner
        low, high = self._ranges.of_integer(value, signed) if isinstance(value.type, IntegerType) else (0, EXACT + 1)
        if low < -EXACT or high > EXACT or not isinstance(op, Operation):
            return None
        if isinstance(op, arith.ConstantOp):
            return self._constant(integer_constant(op, signed))
        if isinstance(op, arith.FPToSIOp | arith.FPToUIOp):
            return self._of_rounded(op, signed) if isinstance(op, arith.FPToSIOp) == signed else None
        if isinstance(op, arith.ExtSIOp | arith.ExtUIOp):
            source, of_signed = op.operands[0], isinstance(op, arith.ExtSIOp)
            is_same = self._ranges.of_integer(source, of_signed) == (low, high)  # not negative where signs differ
            return self._float(source, of_signed) if is_same else None
        if isinstance(op, arith.AddiOp | arith.SubiOp):
            return self._of_sum(op, signed)
        return None

    def _of_rounded(self, op: Operation, signed: bool) -> SSAValue | None:
        """Returns the float that ``op`` converts, if it is a whole number in the range of the integer or NaN, which
        becomes 0.
        """
        x, result = op.operands[0], op.results[0]
        if not isinstance(x.type, Float32Type):
            return None
        of, bounds = self._ranges.of(x), self._ranges.of_integer(result, signed)
        if not of.is_exact or of.low < bounds[0] or of.high > bounds[1]:
            return None
        if of.nan:
            is_number = self._add(arith.CmpfOp(x, x, "ord"), op)
            x = self._add(arith.SelectOp(is_number, x, self._constant(0)), op)
        if of.negative_zero:
            x = self._add(arith.AddfOp(x, self._constant(0), flags=_STRICT), op)
        op.operands[0] = x
        return x

    def _of_sum(self, op: Operation, signed: bool) -> SSAValue | None:
        ranges = [self._ranges.of_integer(v, signed) for v in op.operands]
        low, high = self._ranges.of_integer(op.results[0], signed)
        sums = isinstance(op, arith.AddiOp)
        a, b = ranges if sums else (ranges[0], (-ranges[1][1], -ranges[1][0]))
        if (low, high) != (a[0] + b[0], a[1] + b[1]):
            return None  # it may wrap
        x, y = (self._float(v, signed) for v in op.operands)
        if x is None or y is None:
            return None
        if float_constant(y) == 0:
            return x
        term = float_constant(y)
        key = sums, x, y if term is None else term
        if key not in self._sums:
            self._sums[key] = self._add((arith.AddfOp if sums else arith.SubfOp)(x, y, flags=_STRICT))
        return self._sums[key]

    def _constant(self, number: int) -> SSAValue:
        """Returns a float that is ``number``, which stands first in the block."""
        if number not in self._numbers:
            op = arith.ConstantOp(FloatAttr(float(number), f32), f32)
            first = self._block.first_op
            assert first is not None  # a body ends in linalg.yield
            self._numbers[number] = self._add(op, first)
        return self._numbers[number]

    def _add(self, op: Operation, before: Operation | None = None) -> SSAValue:
        """Inserts ``op`` before another operation, by default the one that is simplified; returns its result."""
        at = before or self._before
        assert at is not None
        self._block.insert_op_before(op, at)
        return op.results[0]


_Rule = Callable[[_Body, Operation], "SSAValue | None"]
_CONVERSIONS = frozenset((arith.SIToFPOp, arith.UIToFPOp))
_RULES: dict[type[Operation], _Rule] = {
    arith.SIToFPOp: _Body.to_float,
    arith.UIToFPOp: _Body.to_float,
    arith.ExtSIOp: _Body.extended,
    arith.ExtUIOp: _Body.extended,
    arith.MulfOp: _Body.product,
    arith.AddfOp: _Body.added,
    arith.MaximumfOp: _Body.extremum,
    arith.MinimumfOp: _Body.extremum,
    **dict.fromkeys(_ROUNDS, _Body.rounded),
}
#: Operations of bodies that are erased when nothing reads them.
_PURE = frozenset(
    (
        *_RULES,
        arith.ConstantOp,
        arith.FPToSIOp,
        arith.FPToUIOp,
        arith.AddiOp,
        arith.SubiOp,
        arith.SubfOp,
        arith.DivfOp,
        arith.CmpfOp,
        arith.SelectOp,
    )
)
