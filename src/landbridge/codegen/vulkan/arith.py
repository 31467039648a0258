"""SPIR-V of the ``arith`` dialect on scalars.

Integers have no sign, their operations do. A 16-bit float is widened to f32 before every operation except moves and
casts, and the result is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation

from landbridge.codegen.contraction import fused_product, is_fused
from landbridge.codegen.elements import NARROW, narrow_bits
from landbridge.codegen.printing import allows, constant_values, predicate
from landbridge.codegen.vulkan import glsl
from landbridge.codegen.vulkan.emitter import Printer, SpirvEmitter
from landbridge.codegen.vulkan.quotients import quotient
from landbridge.codegen.vulkan.terms import narrowed, widened
from landbridge.codegen.vulkan.zeros import Rule, minus_zero, of_zero, one, plus_zero
from landbridge.errors import CodegenError
from landbridge.executable.spirv import Op
from landbridge.ir.prim_ops import ByteDotOp


def apply(rule: Rule) -> Printer:
    """Returns the printer of a rule over floats or integers of one element."""

    def emit(e: SpirvEmitter, op: Operation) -> None:
        source, result = e.element(op.operands[0]), e.element(op.results[0])
        operands = list(e.operands(op))
        if source in NARROW:
            narrow = [e.element(o) in NARROW for o in op.operands]
            operands = [widened(e, x, source) if n else x for x, n in zip(operands, narrow, strict=True)]
            source = "f32"
        if result in NARROW:
            e.set(op.results[0], narrowed(e, rule(e, operands, source, "f32"), "f32", result))
        else:
            e.set(op.results[0], rule(e, operands, source, result))

    return emit


def _integer(op: Op, on_truths: Op | None = None) -> Rule:
    """Returns a rule of one instruction on integers and another on booleans."""

    def rule(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
        if source == "i1":
            if on_truths is None:
                raise CodegenError(f"{op.name} of i1 has no SPIR-V form; compute on i8")
            return e.emit(on_truths, result, *x)
        return e.emit(op, result, *x)

    return rule


def _extremum(compare: Op, on_truths: Op) -> Rule:
    def rule(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
        if source == "i1":
            return e.emit(on_truths, "i1", *x)
        return e.emit(Op.Select, result, e.emit(compare, "i1", *x), *x)

    return rule


def _rest(e: SpirvEmitter, divide: Op, x: Sequence[int], quotient: int, result: str) -> int:
    """Returns the remainder of a division. OpSRem and OpSMod are undefined where an operand is negative, OpSDiv is not
    (Vulkan 1.3 specification, appendix A, "Precision and Operation of SPIR-V Instructions").
    """
    if divide == Op.UDiv:
        return e.emit(Op.UMod, result, *x)
    return e.emit(Op.ISub, result, x[0], e.emit(Op.IMul, result, quotient, x[1]))


def _signed_remainder(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
    if source == "i1":
        raise CodegenError("a remainder of i1 has no SPIR-V form; compute on i8")
    return _rest(e, Op.SDiv, x, e.emit(Op.SDiv, result, *x), result)


def _rounded_division(divide: Op, *, signed: bool, up: bool) -> Rule:
    """Returns the rule of the truncated quotient, moved by one where the remainder is not 0 and the exact quotient lies
    beyond it.
    """

    def rule(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
        quotient = e.emit(divide, result, *x)
        rest = _rest(e, divide, x, quotient, result)
        zero = e.constant(0, result)
        moved = e.emit(Op.INotEqual, "i1", rest, zero)
        if signed:
            negative = [e.emit(Op.SLessThan, "i1", value, zero) for value in x]
            beyond = e.emit(Op.LogicalEqual if up else Op.LogicalNotEqual, "i1", *negative)
            moved = e.emit(Op.LogicalAnd, "i1", moved, beyond)
        next_one = e.emit(Op.IAdd, result, quotient, e.constant(1 if up else -1, result))
        return e.emit(Op.Select, result, moved, next_one, quotient)

    return rule


def is_nan(e: SpirvEmitter, x: int) -> int:
    """Returns whether a float is NaN."""
    return e.emit(Op.IsNan, "i1", x)


def _float_extremum(compare: Op) -> Printer:
    """Returns a printer of maximum or minimum: NaN wins; of two zeros, -0 is the smaller, unless ``nsz`` is set."""

    def emit(e: SpirvEmitter, op: Operation) -> None:
        either = allows(op, FastMathFlag.NO_SIGNED_ZEROS)

        def rule(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
            a, b = x
            first = e.emit(Op.LogicalOr, "i1", e.emit(compare, "i1", a, b), is_nan(e, a))
            if not either:
                width = "i32" if source == "f32" else "i64"
                signed = b if compare == Op.FOrdGreaterThan else a
                negative = e.emit(Op.SLessThan, "i1", e.emit(Op.Bitcast, width, signed), e.constant(0, width))
                same = e.emit(Op.FOrdEqual, "i1", a, b)
                first = e.emit(Op.LogicalOr, "i1", first, e.emit(Op.LogicalAnd, "i1", same, negative))
            return e.emit(Op.Select, result, first, a, b)

        apply(rule)(e, op)

    return emit


_FLOAT_PREDICATES = {
    "oeq": Op.FOrdEqual,
    "ogt": Op.FOrdGreaterThan,
    "oge": Op.FOrdGreaterThanEqual,
    "olt": Op.FOrdLessThan,
    "ole": Op.FOrdLessThanEqual,
    "one": Op.FOrdNotEqual,
    "ueq": Op.FUnordEqual,
    "ugt": Op.FUnordGreaterThan,
    "uge": Op.FUnordGreaterThanEqual,
    "ult": Op.FUnordLessThan,
    "ule": Op.FUnordLessThanEqual,
    "une": Op.FUnordNotEqual,
}
_INTEGER_PREDICATES = {
    "eq": Op.IEqual,
    "ne": Op.INotEqual,
    "slt": Op.SLessThan,
    "sle": Op.SLessThanEqual,
    "sgt": Op.SGreaterThan,
    "sge": Op.SGreaterThanEqual,
    "ult": Op.ULessThan,
    "ule": Op.ULessThanEqual,
    "ugt": Op.UGreaterThan,
    "uge": Op.UGreaterThanEqual,
}


def _compare_floats(e: SpirvEmitter, op: Operation) -> None:
    name = predicate(op)

    def rule(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
        if name in ("true", "false"):
            return e.constant(name == "true", "i1")
        if name in ("ord", "uno"):
            either = e.emit(Op.LogicalOr, "i1", *(is_nan(e, value) for value in x))
            return either if name == "uno" else e.emit(Op.LogicalNot, "i1", either)
        return e.emit(_FLOAT_PREDICATES[name], "i1", *x)

    apply(rule)(e, op)


def _compare_integers(e: SpirvEmitter, op: Operation) -> None:
    name = predicate(op)
    x = e.operands(op)
    if e.element(op.operands[0]) != "i1":
        e.set(op.results[0], e.emit(_INTEGER_PREDICATES[name], "i1", *x))
        return
    if name in ("eq", "ne"):
        e.set(op.results[0], e.emit(Op.LogicalEqual if name == "eq" else Op.LogicalNotEqual, "i1", *x))
        return
    # The one bit of an i1 is its sign: as bytes of 0 and -1, or of 0 and 1.
    true = -1 if name[0] == "s" else 1
    wide = [e.emit(Op.Select, "i32", value, e.constant(true, "i32"), e.constant(0, "i32")) for value in x]
    e.set(op.results[0], e.emit(_INTEGER_PREDICATES[name], "i1", *wide))


def _constant(e: SpirvEmitter, op: Operation) -> None:
    ty = op.results[0].type
    element = e.element_of(ty.element_type if isinstance(ty, VectorType) else ty)
    values = constant_values(op, e.form)
    found = [e.constant(narrow_bits(value, element) if element in NARROW else value, element) for value in values]
    if isinstance(ty, VectorType):
        e.lanes[op.results[0]] = tuple(found * (ty.element_count() // len(found)))
    else:
        e.set(op.results[0], found[0])


def _select(e: SpirvEmitter, op: Operation) -> None:
    e.set(op.results[0], e.emit(Op.Select, e.element(op.results[0]), *e.operands(op)))


def _multiply(e: SpirvEmitter, op: Operation) -> None:
    if not is_fused(op):
        apply(of_zero(op, Op.FMul))(e, op)


def _add(e: SpirvEmitter, op: Operation) -> None:
    product = fused_product(op)
    if product is None:
        apply(plus_zero(op) or one(Op.FAdd))(e, op)
        return
    other = next(operand for operand in op.operands if operand.owner is not product)
    x = [e.ids[value] for value in (*product.operands, other)]
    e.set(op.results[0], e.library(glsl.OPCODES["fma"], e.element(op.results[0]), *x))


def _subtract(e: SpirvEmitter, op: Operation) -> None:
    apply(minus_zero(op) or one(Op.FSub))(e, op)


def _byte_dot(e: SpirvEmitter, op: Operation) -> None:
    """Multiplies bytes that are moved to the top of a word and back, which extends their sign or zeros."""
    x, y = e.operands(op)
    top, products = e.constant(24, "i32"), []
    for bits in (24, 16, 8, 0):
        moved = e.constant(bits, "i32")
        a, b = (e.emit(Op.ShiftLeftLogical, "i32", value, moved) for value in (x, y))
        a, b = e.emit(Op.ShiftRightLogical, "i32", a, top), e.emit(Op.ShiftRightArithmetic, "i32", b, top)
        products.append(e.emit(Op.IMul, "i32", a, b))
    e.set(op.results[0], reduce(lambda total, product: e.emit(Op.IAdd, "i32", total, product), products))


PRINTERS: dict[type[Operation], Printer] = {
    ByteDotOp: _byte_dot,
    arith.ConstantOp: _constant,
    arith.AddiOp: apply(_integer(Op.IAdd, Op.LogicalNotEqual)),
    arith.SubiOp: apply(_integer(Op.ISub, Op.LogicalNotEqual)),
    arith.MuliOp: apply(_integer(Op.IMul, Op.LogicalAnd)),
    arith.AndIOp: apply(_integer(Op.BitwiseAnd, Op.LogicalAnd)),
    arith.OrIOp: apply(_integer(Op.BitwiseOr, Op.LogicalOr)),
    arith.XOrIOp: apply(_integer(Op.BitwiseXor, Op.LogicalNotEqual)),
    arith.ShLIOp: apply(_integer(Op.ShiftLeftLogical)),
    arith.ShRUIOp: apply(_integer(Op.ShiftRightLogical)),
    arith.ShRSIOp: apply(_integer(Op.ShiftRightArithmetic)),
    arith.DivSIOp: apply(_integer(Op.SDiv)),
    arith.DivUIOp: apply(_integer(Op.UDiv)),
    arith.RemSIOp: apply(_signed_remainder),
    arith.RemUIOp: apply(_integer(Op.UMod)),
    arith.FloorDivSIOp: apply(_rounded_division(Op.SDiv, signed=True, up=False)),
    arith.CeilDivSIOp: apply(_rounded_division(Op.SDiv, signed=True, up=True)),
    arith.CeilDivUIOp: apply(_rounded_division(Op.UDiv, signed=False, up=True)),
    # True is -1 as a signed boolean and 1 as an unsigned one.
    arith.MinSIOp: apply(_extremum(Op.SLessThan, Op.LogicalOr)),
    arith.MaxSIOp: apply(_extremum(Op.SGreaterThan, Op.LogicalAnd)),
    arith.MinUIOp: apply(_extremum(Op.ULessThan, Op.LogicalAnd)),
    arith.MaxUIOp: apply(_extremum(Op.UGreaterThan, Op.LogicalOr)),
    arith.CmpiOp: _compare_integers,
    arith.CmpfOp: _compare_floats,
    arith.SelectOp: _select,
    arith.AddfOp: _add,
    arith.SubfOp: _subtract,
    arith.MulfOp: _multiply,
    arith.DivfOp: lambda e, op: apply(of_zero(op, Op.FDiv, quotient))(e, op),
    arith.NegfOp: apply(one(Op.FNegate)),
    arith.MaximumfOp: _float_extremum(Op.FOrdGreaterThan),
    arith.MinimumfOp: _float_extremum(Op.FOrdLessThan),
    arith.MaxnumfOp: apply(lambda e, x, source, result: e.library(glsl.OPCODES["maxnum"], result, *x)),
    arith.MinnumfOp: apply(lambda e, x, source, result: e.library(glsl.OPCODES["minnum"], result, *x)),
}
