"""LLVM IR of the ``arith`` dialect, scalars and vectors alike."""

from __future__ import annotations

from math import copysign, isnan

from xdsl.dialects import arith
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IndexType
from xdsl.dialects.utils import FastMathFlag
from xdsl.dialects.vector import BroadcastOp
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.llvm.emitter import LlvmEmitter, Printer
from landbridge.codegen.llvm.narrow_floats import in_float, is_narrow, widen
from landbridge.codegen.llvm.types import (
    element_of,
    literal,
    splat,
    with_element,
)
from landbridge.codegen.printing import constant_values, predicate

# Flags that let LLVM assume away NaN or infinities are never passed on: they gave NaN on real networks.
_HONOURED = {
    FastMathFlag.REASSOC: "reassoc",
    FastMathFlag.NO_SIGNED_ZEROS: "nsz",
    FastMathFlag.ALLOW_RECIP: "arcp",
    FastMathFlag.ALLOW_CONTRACT: "contract",
}


def fast_flags(op: Operation) -> str:
    """The fast-math flags of ``op`` as LLVM text with a trailing blank, or nothing."""
    attr = op.properties.get("fastmath") or op.attributes.get("fastmath")
    if not isinstance(attr, FastMathFlagsAttr) or not attr.data:
        return ""
    return "".join(f"{text} " for flag, text in _HONOURED.items() if flag in attr.data)


def _constant(e: LlvmEmitter, op: Operation) -> None:
    kind, values = e.type(op.results[0].type), constant_values(op, e.form)
    if len(values) == 1:
        e.names[op.results[0]] = splat(values[0], kind)
    else:
        element = element_of(kind)
        e.names[op.results[0]] = "<" + ", ".join(f"{element} {literal(v, element)}" for v in values) + ">"


def _binary(opcode: str) -> Printer:
    def emit(e: LlvmEmitter, op: Operation) -> None:
        a, b = op.operands
        e.set(op.results[0], f"{opcode} {e.type(a.type)} {e.names[a]}, {e.names[b]}")

    return emit


def _float_binary(opcode: str) -> Printer:
    def emit(e: LlvmEmitter, op: Operation) -> None:
        flags = fast_flags(op)
        in_float(e, op, lambda kind, names: f"{opcode} {flags}{kind} {names[0]}, {names[1]}")

    return emit


def _sum(opcode: str) -> Printer:
    """Addition or subtraction, of a product in one step where the processor has that.

    Left to LLVM, which product is fused would depend on the code around it, and equal terms not give equal sums.
    """
    plain = _float_binary(opcode)

    def emit(e: LlvmEmitter, op: Operation) -> None:
        kind, flags = e.type(op.results[0].type), fast_flags(op)
        for i, product in enumerate(op.operands):
            if "contract" not in flags or is_narrow(kind) or not _is_fusible(product):
                continue
            a, b = (e.names[v] for v in product.owner.operands)  # type: ignore[union-attr]
            c = e.names[op.operands[1 - i]]
            if opcode == "fsub":
                c, a = (e.emit(f"fneg {kind} {c}"), a) if i == 0 else (c, e.emit(f"fneg {kind} {a}"))
            e.set(op.results[0], e.intrinsic("fmuladd", kind, [a, b, c], flags))
            return
        plain(e, op)

    return emit


def _is_fusible(value: SSAValue) -> bool:
    """Whether ``value`` is a product that nothing else needs and that need not be rounded."""
    return isinstance(value.owner, arith.MulfOp) and "contract" in fast_flags(value.owner) and value.has_one_use()


def _overflowing(opcode: str) -> Printer:
    """Addition, subtraction, multiplication, shift: index arithmetic addresses memory and never wraps."""

    def emit(e: LlvmEmitter, op: Operation) -> None:
        a, b = op.operands
        result = op.results[0]
        x, y = e.names[a], e.names[b]
        kind = e.type(a.type)
        is_index = isinstance(a.type, IndexType)
        if is_index and _fold_index(e, op, opcode, x, y):
            return
        if is_index:
            name = e.names[result] = e.once(f"{opcode} nsw {kind} {x}, {y}")
            e.depths[name] = max(e.depths.get(x, 0), e.depths.get(y, 0))
            _record_offset(e, name, opcode, x, y)
            return
        flags = op.properties.get("overflowFlags")
        text = "".join(f"{flag.value} " for flag in getattr(flags, "data", ()))
        e.set(result, f"{opcode} {text}{kind} {x}, {y}")

    return emit


def _is_number(text: str) -> bool:
    return text[0] != "%" and (text[0] == "-" or text.isdigit())


def _fold_index(e: LlvmEmitter, op: Operation, opcode: str, x: str, y: str) -> bool:
    """Fold what is constant or has no effect, so that the address arithmetic printed later is short."""
    result = op.results[0]
    if _is_number(x) and _is_number(y) and opcode in ("add", "sub", "mul"):
        a, b = int(x), int(y)
        e.names[result] = str(a + b if opcode == "add" else a - b if opcode == "sub" else a * b)
        return True
    if (y == "0" and opcode in ("add", "sub")) or (y == "1" and opcode == "mul"):
        e.names[result] = x
        return True
    if (x == "0" and opcode == "add") or (x == "1" and opcode == "mul"):
        e.names[result] = y
        return True
    return False


def _record_offset(e: LlvmEmitter, name: str, opcode: str, x: str, y: str) -> None:
    if opcode == "add" and _is_number(x):
        x, y = y, x
    if opcode in ("add", "sub") and _is_number(y):
        base, constant = e.offsets.get(x, (x, 0))
        e.offsets[name] = (base, constant + (int(y) if opcode == "add" else -int(y)))


def _integer_intrinsic(stem: str) -> Printer:
    def emit(e: LlvmEmitter, op: Operation) -> None:
        kind = e.type(op.operands[0].type)
        e.set(op.results[0], e.intrinsic(stem, kind, [e.names[o] for o in op.operands]))

    return emit


def _float_intrinsic(stem: str) -> Printer:
    def emit(e: LlvmEmitter, op: Operation) -> None:
        flags = fast_flags(op)
        in_float(e, op, lambda kind, names: e.intrinsic(stem, kind, names, flags))

    return emit


def _extremum(stem: str, beats: str) -> Printer:
    """NaN-propagating maximum or minimum; ``beats`` is the comparison by which an operand wins.

    Against a constant it is ``constant beats x ? constant : x``, one machine instruction where the general form
    takes several. The tie of two zeros of unlike sign goes right with ``beats``, but for the constant that must
    win such a tie: there equality wins too (a cheaper instruction is right under ``nsz``).
    """
    general = _float_intrinsic(stem)
    must_win = 1.0 if stem == "maximum" else -1.0

    def emit(e: LlvmEmitter, op: Operation) -> None:
        for constant, other in (op.operands, reversed(op.operands)):
            value = _splat_value(constant)
            if value is None or isnan(value):
                continue
            flags = fast_flags(op)
            wins_ties = value == 0 and copysign(1.0, value) == must_win and "nsz" not in flags
            kind, c, x = e.type(other.type), e.names[constant], e.names[other]
            if is_narrow(kind):
                break
            won = e.emit(f"fcmp {beats.replace('t', 'e') if wins_ties else beats} {kind} {c}, {x}")
            e.set(op.results[0], f"select {with_element(kind, 'i1')} {won}, {kind} {c}, {kind} {x}")
            return
        general(e, op)

    return emit


def _splat_value(value: SSAValue) -> float | None:
    """The number that every lane of a constant or of its broadcast has; None for anything else."""
    op = value.owner
    if isinstance(op, BroadcastOp):
        op = op.source.owner
    if not isinstance(op, arith.ConstantOp):
        return None
    attr = op.value
    if isinstance(attr, FloatAttr):
        return float(attr.value.data)
    if isinstance(attr, DenseIntOrFPElementsAttr) and attr.is_splat():
        return float(attr.get_values()[0])
    return None


def _round_division(signed: bool, up: bool) -> Printer:
    """Division rounded down or up: the truncated quotient, corrected where a remainder is left."""

    def emit(e: LlvmEmitter, op: Operation) -> None:
        a, b = op.operands
        kind, x, y = e.type(a.type), e.names[a], e.names[b]
        zero = splat(0, kind)
        quotient = e.emit(f"{'sdiv' if signed else 'udiv'} {kind} {x}, {y}")
        remainder = e.emit(f"{'srem' if signed else 'urem'} {kind} {x}, {y}")
        flag = e.emit(f"icmp ne {kind} {remainder}, {zero}")
        if signed:
            signs = e.emit(f"xor {kind} {x}, {y}")
            # Truncation went up when the signs differ, down when they are equal.
            wrong_side = e.emit(f"icmp {'sge' if up else 'slt'} {kind} {signs}, {zero}")
            flag = e.emit(f"and {with_element(kind, 'i1')} {flag}, {wrong_side}")
        correction = e.emit(f"zext {with_element(kind, 'i1')} {flag} to {kind}")
        e.set(op.results[0], f"{'add' if up else 'sub'} {kind} {quotient}, {correction}")

    return emit


def _compare_int(e: LlvmEmitter, op: Operation) -> None:
    a, b = op.operands
    e.set(op.results[0], f"icmp {predicate(op)} {e.type(a.type)} {e.names[a]}, {e.names[b]}")


def _compare_float(e: LlvmEmitter, op: Operation) -> None:
    (kind, a), (_, b) = (widen(e, e.type(o.type), e.names[o]) for o in op.operands)
    e.set(op.results[0], f"fcmp {fast_flags(op)}{predicate(op)} {kind} {a}, {b}")


def _select(e: LlvmEmitter, op: Operation) -> None:
    c, a, b = op.operands
    kind = e.type(a.type)
    e.set(op.results[0], f"select {e.type(c.type)} {e.names[c]}, {kind} {e.names[a]}, {kind} {e.names[b]}")


def _negate(e: LlvmEmitter, op: Operation) -> None:
    a = op.operands[0]
    e.set(op.results[0], f"fneg {fast_flags(op)}{e.type(a.type)} {e.names[a]}")


def _extended_multiply(signed: bool) -> Printer:
    """Both halves of a product, low then high."""

    def emit(e: LlvmEmitter, op: Operation) -> None:
        a, b = op.operands
        kind = e.type(a.type)
        bits = int(element_of(kind)[1:])
        wide = with_element(kind, f"i{2 * bits}")
        opcode = "sext" if signed else "zext"
        x, y = (e.emit(f"{opcode} {kind} {e.names[v]} to {wide}") for v in (a, b))
        product = e.emit(f"mul {wide} {x}, {y}")
        e.set(op.results[0], f"trunc {wide} {product} to {kind}")
        shifted = e.emit(f"lshr {wide} {product}, {splat(bits, wide)}")
        e.set(op.results[1], f"trunc {wide} {shifted} to {kind}")

    return emit


def _extended_add(e: LlvmEmitter, op: Operation) -> None:
    a, b = op.operands
    kind = e.type(a.type)
    total = e.emit(f"add {kind} {e.names[a]}, {e.names[b]}")
    e.names[op.results[0]] = total
    e.set(op.results[1], f"icmp ult {kind} {total}, {e.names[a]}")


PRINTERS: dict[type[Operation], Printer] = {
    arith.ConstantOp: _constant,
    arith.AddiOp: _overflowing("add"),
    arith.SubiOp: _overflowing("sub"),
    arith.MuliOp: _overflowing("mul"),
    arith.ShLIOp: _overflowing("shl"),
    arith.AddUIExtendedOp: _extended_add,
    arith.MulUIExtendedOp: _extended_multiply(signed=False),
    arith.MulSIExtendedOp: _extended_multiply(signed=True),
    arith.DivUIOp: _binary("udiv"),
    arith.DivSIOp: _binary("sdiv"),
    arith.RemUIOp: _binary("urem"),
    arith.RemSIOp: _binary("srem"),
    arith.FloorDivSIOp: _round_division(signed=True, up=False),
    arith.CeilDivSIOp: _round_division(signed=True, up=True),
    arith.CeilDivUIOp: _round_division(signed=False, up=True),
    arith.MinUIOp: _integer_intrinsic("umin"),
    arith.MaxUIOp: _integer_intrinsic("umax"),
    arith.MinSIOp: _integer_intrinsic("smin"),
    arith.MaxSIOp: _integer_intrinsic("smax"),
    arith.AndIOp: _binary("and"),
    arith.OrIOp: _binary("or"),
    arith.XOrIOp: _binary("xor"),
    arith.ShRUIOp: _binary("lshr"),
    arith.ShRSIOp: _binary("ashr"),
    arith.CmpiOp: _compare_int,
    arith.CmpfOp: _compare_float,
    arith.SelectOp: _select,
    arith.AddfOp: _sum("fadd"),
    arith.SubfOp: _sum("fsub"),
    arith.MulfOp: _float_binary("fmul"),
    arith.DivfOp: _float_binary("fdiv"),
    arith.NegfOp: _negate,
    arith.MaximumfOp: _extremum("maximum", "ogt"),
    arith.MinimumfOp: _extremum("minimum", "olt"),
    arith.MaxnumfOp: _float_intrinsic("maxnum"),
    arith.MinnumfOp: _float_intrinsic("minnum"),
}
