"""LLVM IR of the conversions of the ``arith`` dialect, for scalars and vectors."""

from __future__ import annotations

from math import inf, isnan

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.llvm.emitter import INDEX_BITS, LlvmEmitter, Printer
from landbridge.codegen.llvm.float_arith import splat_value
from landbridge.codegen.llvm.narrow_floats import is_narrow, narrow, widen
from landbridge.codegen.llvm.types import element_of, lanes_of, splat, suffix, with_element
from landbridge.codegen.printing import predicate

#: Lanes of integers with at most this many bits are converted by way of i32, which vector instructions convert to.
_NARROW_BITS = 16
#: Bits of a float's fraction, the leading 1 among them.
_FRACTION = {"float": 24, "double": 53}


def cast(e: LlvmEmitter, op: Operation, opcode: str) -> None:
    """Prints a conversion by one LLVM instruction; none where source and result have the same LLVM type."""
    source, result = op.operands[0], op.results[0]
    before, after = e.type(source.type), e.type(result.type)
    if before == after:
        e.names[result] = e.names[source]
    else:
        e.set(result, f"{opcode} {before} {e.names[source]} to {after}")


def _cast(opcode: str) -> Printer:
    return lambda e, op: cast(e, op, opcode)


def _index_cast(e: LlvmEmitter, op: Operation) -> None:
    before, after = (int(element_of(e.type(v.type))[1:]) for v in (op.operands[0], op.results[0]))
    cast(e, op, "trunc" if before > after else "sext")
    name = e.names[op.results[0]]
    if e.module.isa.address_bits == INDEX_BITS or type(op.results[0].type) is not IndexType:
        return
    if not e.depth and not e.is_short(name):  # a word of the call, which counts elements; what loops read may be data
        e.names[op.results[0]] = e.widened(e.cut(name))


def _saturating(stem: str) -> Printer:
    """Returns a printer of float to integer: MLIR leaves values out of range undefined, this back end clamps them; NaN
    gives 0.
    """

    def emit(e: LlvmEmitter, op: Operation) -> None:
        source, result = op.operands[0], op.results[0]
        before, name = widen(e, e.type(source.type), e.names[source])
        after = e.type(result.type)
        if lanes_of(after):
            e.set(result, _clamped(e, stem == "fptosi", before, name, after, known_range(source)))
            return
        symbol = f"llvm.{stem}.sat.{suffix(after)}.{suffix(before)}"
        e.module.declare(symbol, after, [before])
        e.set(result, f"call {after} @{symbol}({before} {name})")

    return emit


def known_range(value: SSAValue) -> tuple[float, float, bool]:
    """Returns the bounds between which a float lies, as the operations next to it show, and whether it may be NaN."""
    op = value.owner
    if isinstance(op, arith.SelectOp):
        other, test = splat_value(op.rhs), op.cond.owner
        if other is not None and isinstance(test, arith.CmpfOp) and predicate(test) == "ord":
            low, high, nan = known_range(op.lhs)
            return min(low, other), max(high, other), nan and not (test.lhs is op.lhs and test.rhs is op.lhs)
    elif isinstance(op, arith.MaximumfOp | arith.MinimumfOp):
        for of, bound in (tuple(op.operands), tuple(reversed(op.operands))):
            limit = splat_value(bound)
            if limit is not None:
                low, high, nan = known_range(of)
                pick = max if isinstance(op, arith.MaximumfOp) else min
                return pick(low, limit), pick(high, limit), nan or isnan(limit)
    return -inf, inf, True


def _clamped(e: LlvmEmitter, signed: bool, before: str, name: str, after: str, known: tuple[float, float, bool]) -> str:
    """Returns the same for vectors, clamped as floats; LLVM would clamp integers, lane by lane if they are narrow.

    NaN becomes the lower bound where that is tested and is 0, as of unsigned integers; elsewhere it is replaced by 0
    before: LLVM removes the test by a bound that an earlier maximum has tested, which keeps NaN. If the upper bound is
    not a float, the largest float below it is converted, and larger values are replaced by the bound.
    ``known``, as ``known_range`` returns it, says what need not be tested.
    """
    bits, lanes = int(element_of(after)[1:]), f"<{lanes_of(after)} x i1>"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    least, most, nan = known
    if nan and (signed or least >= low):
        ordered = e.emit(f"fcmp ord {before} {name}, {name}")
        name = e.emit(f"select {lanes} {ordered}, {before} {name}, {before} zeroinitializer")
    given, spare = name, max(high.bit_length() - _FRACTION[element_of(before)], 0)
    largest = high >> spare << spare
    if least < low:
        name = _bounded(e, "ogt", before, name, low)
    if most > largest:
        name = _bounded(e, "olt", before, name, largest)
    else:
        spare = 0
    if bits <= _NARROW_BITS:
        whole = with_element(after, "i32")
        return f"trunc {whole} {e.emit(f'fptosi {before} {name} to {whole}')} to {after}"
    kind = "fptosi" if signed else "fptoui"
    if not spare:
        return f"{kind} {before} {name} to {after}"
    whole = e.emit(f"{kind} {before} {name} to {after}")
    beyond = e.emit(f"fcmp oge {before} {given}, {splat(float(high + 1), before)}")
    return f"select {lanes} {beyond}, {after} {splat(high, after)}, {after} {whole}"


def _bounded(e: LlvmEmitter, order: str, kind: str, name: str, bound: int) -> str:
    """Returns ``name`` where it is in ``order`` to ``bound``, elsewhere the bound."""
    limit = splat(float(bound), kind)
    inside = e.emit(f"fcmp {order} {kind} {name}, {limit}")
    return e.emit(f"select {with_element(kind, 'i1')} {inside}, {kind} {name}, {kind} {limit}")


def _to_float(opcode: str) -> Printer:
    """Returns a printer of integer to float; 16-bit floats are converted from f32."""

    def emit(e: LlvmEmitter, op: Operation) -> None:
        source, kind = op.operands[0], e.type(op.results[0].type)
        wide = with_element(kind, "float") if is_narrow(kind) else kind
        name = e.emit(f"{opcode} {e.type(source.type)} {e.names[source]} to {wide}")
        e.names[op.results[0]] = narrow(e, wide, name, kind)

    return emit


def _extend_float(e: LlvmEmitter, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    before, name = widen(e, e.type(source.type), e.names[source])
    after = e.type(result.type)
    e.names[result] = name if before == after else e.emit(f"fpext {before} {name} to {after}")


def _truncate_float(e: LlvmEmitter, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    e.names[result] = narrow(e, e.type(source.type), e.names[source], e.type(result.type))


def bitcast(e: LlvmEmitter, op: Operation) -> None:
    """Prints the same bits as another type."""
    cast(e, op, "bitcast")


PRINTERS: dict[type[Operation], Printer] = {
    arith.BitcastOp: bitcast,
    arith.IndexCastOp: _index_cast,
    arith.FPToSIOp: _saturating("fptosi"),
    arith.FPToUIOp: _saturating("fptoui"),
    arith.SIToFPOp: _to_float("sitofp"),
    arith.UIToFPOp: _to_float("uitofp"),
    arith.ExtFOp: _extend_float,
    arith.TruncFOp: _truncate_float,
    arith.TruncIOp: _cast("trunc"),
    arith.ExtSIOp: _cast("sext"),
    arith.ExtUIOp: _cast("zext"),
}
