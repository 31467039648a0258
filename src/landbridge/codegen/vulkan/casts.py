"""SPIR-V of the conversions of the ``arith`` dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation

from landbridge.codegen.elements import NARROW
from landbridge.codegen.vulkan.arith import apply, is_nan
from landbridge.codegen.vulkan.emitter import Printer, SpirvEmitter, bits_of
from landbridge.codegen.vulkan.terms import narrowed, widened
from landbridge.codegen.vulkan.zeros import Rule
from landbridge.executable.spirv import Op


def resized(e: SpirvEmitter, x: int, source: str, result: str, *, signed: bool) -> int:
    """Returns an integer of another width."""
    if source == "i1":
        return e.emit(Op.Select, result, x, e.constant(-1 if signed else 1, result), e.constant(0, result))
    if result == "i1":
        lowest = e.emit(Op.BitwiseAnd, source, x, e.constant(1, source))
        return e.emit(Op.INotEqual, "i1", lowest, e.constant(0, source))
    if source == result:
        return x
    if signed and (source, result) == ("i32", "i64"):
        return _sign_extended(e, x)
    return e.emit(Op.SConvert if signed else Op.UConvert, result, x)


def _sign_extended(e: SpirvEmitter, x: int) -> int:
    """Returns an i64 built of its two words. Mesa 22.3 compares an OpSConvert of 32 bits with a constant as if both had
    no sign: its rules narrow the comparison (found on lavapipe by seed 938 of tests/fuzz).
    """
    sign = e.emit(Op.ShiftRightArithmetic, "i32", x, e.constant(31, "i32"))
    words = e.module.fresh()
    e.statement(Op.CompositeConstruct, e.module.integers(2), words, x, sign)
    return e.emit(Op.Bitcast, "i64", words)


def _resize(*, signed: bool) -> Printer:
    def emit(e: SpirvEmitter, op: Operation) -> None:
        source, result = e.element(op.operands[0]), e.element(op.results[0])
        e.set(op.results[0], resized(e, e.ids[op.operands[0]], source, result, signed=signed))

    return emit


def _to_float(convert: Op, *, signed: bool) -> Rule:
    def rule(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
        if source == "i1":
            return e.emit(Op.Select, result, x[0], e.constant(-1.0 if signed else 1.0, result), e.constant(0.0, result))
        return e.emit(convert, result, x[0])

    return rule


def _to_integer(*, signed: bool) -> Rule:
    """Returns the rule of float to integer, truncated and clamped to the range; NaN gives 0. Other conversions out of
    range are undefined.
    """

    def rule(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
        bits = bits_of(result)
        low = -(2.0 ** (bits - 1)) if signed else 0.0
        high = 2.0 ** (bits - 1 if signed else bits)  # the first value out of range
        wide = result if bits > 32 else "i32"
        value = e.emit(Op.Select, source, is_nan(e, x[0]), e.constant(0.0, source), x[0])
        below = e.emit(Op.FOrdLessThan, "i1", value, e.constant(low, source))
        value = e.emit(Op.Select, source, below, e.constant(low, source), value)
        above = e.emit(Op.FOrdGreaterThanEqual, "i1", value, e.constant(high, source))
        value = e.emit(Op.Select, source, above, e.constant(0.0, source), value)
        number = e.emit(Op.ConvertFToS if signed else Op.ConvertFToU, wide, value)
        number = e.emit(Op.Select, wide, above, e.constant(int(high) - 1, wide), number)
        return resized(e, number, wide, result, signed=False)

    return rule


def _convert_float(e: SpirvEmitter, op: Operation) -> None:
    source, result = e.element(op.operands[0]), e.element(op.results[0])
    x = e.ids[op.operands[0]]
    if source in NARROW and source != result:
        x, source = widened(e, x, source), "f32"
    if result in NARROW and source != result:
        x = narrowed(e, x, source, result)
    elif source != result:
        x = e.emit(Op.FConvert, result, x)
    e.set(op.results[0], x)


def _bitcast(e: SpirvEmitter, op: Operation) -> None:
    source, result = e.element(op.operands[0]), e.element(op.results[0])
    x = e.ids[op.operands[0]]
    same = source == result or {source, result} <= {"i16", *NARROW}
    e.set(op.results[0], x if same else e.emit(Op.Bitcast, result, x))


PRINTERS: dict[type[Operation], Printer] = {
    arith.BitcastOp: _bitcast,
    arith.IndexCastOp: _resize(signed=True),
    arith.ExtSIOp: _resize(signed=True),
    arith.ExtUIOp: _resize(signed=False),
    arith.TruncIOp: _resize(signed=False),
    arith.SIToFPOp: apply(_to_float(Op.ConvertSToF, signed=True)),
    arith.UIToFPOp: apply(_to_float(Op.ConvertUToF, signed=False)),
    arith.FPToSIOp: apply(_to_integer(signed=True)),
    arith.FPToUIOp: apply(_to_integer(signed=False)),
    arith.ExtFOp: _convert_float,
    arith.TruncFOp: _convert_float,
}
