"""Sums, products and quotients with a constant zero, which lavapipe folds to 0 or to the other operand, as if there
were no infinities, no NaN and no -0. It does not fold those with -0, so equivalent forms with -0 are emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.vulkan.emitter import SpirvEmitter
from landbridge.executable.spirv import Op

#: ``rule(emitter, operands, their element, the result's element) -> id``.
Rule = Callable[[SpirvEmitter, Sequence[int], str, str], int]


def one(op: Op) -> Rule:
    """Returns the rule of one instruction."""
    return lambda e, x, source, result: e.emit(op, result, *x)


def of_zero(operation: Operation, op: Op, usual: Rule | None = None) -> Rule:
    """Returns the rule of a product or quotient: with a constant 0, that of -0 with the other sign; else ``usual``, or
    None: ``op``.
    """
    zeros = [_is_zero(v) for v in operation.operands]
    if not any(zeros):
        return usual or one(op)

    def rule(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
        at = zeros.index(True)
        negated = [e.constant(-0.0, source) if i == at else v for i, v in enumerate(x)]
        return _minus(e, e.emit(op, result, *negated), result)

    return rule


def plus_zero(operation: Operation) -> Rule | None:
    """Returns the rule of a sum with the constant 0, which only changes -0; None for another sum."""
    zeros = [_is_zero(v) for v in operation.operands]
    if not any(zeros):
        return None
    return lambda e, x, source, result: _without_minus(e, x[zeros.index(False) if not all(zeros) else 0], result)


def minus_zero(operation: Operation) -> Rule | None:
    """Returns the rule of the constant 0 minus a value, or a value minus -0; None for another difference."""
    if _is_zero(operation.operands[0]):
        return lambda e, x, source, result: _without_minus(e, e.emit(Op.FNegate, result, x[1]), result)
    if _is_zero(operation.operands[1], -1.0):
        return lambda e, x, source, result: _without_minus(e, x[0], result)
    return None


def _is_zero(value: SSAValue, sign: float = 1.0) -> bool:
    """Returns whether ``value`` is the constant zero of ``sign``."""
    attr = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return isinstance(attr, FloatAttr) and attr.value.data == 0 and copysign(1.0, attr.value.data) == sign


def _without_minus(e: SpirvEmitter, x: int, element: str) -> int:
    """Returns ``x``, or 0 where it is -0."""
    zero = e.constant(0.0, element)
    return e.emit(Op.Select, element, e.emit(Op.FOrdEqual, "i1", x, zero), zero, x)


def _minus(e: SpirvEmitter, x: int, element: str) -> int:
    """Returns ``-x`` by its sign bit, which no compiler moves into a product."""
    width, bit = ("i32", 31) if element == "f32" else ("i64", 63)
    bits = e.emit(Op.BitwiseXor, width, e.emit(Op.Bitcast, width, x), e.constant(1 << bit, width))
    return e.emit(Op.Bitcast, element, bits)
