"""LLVM IR of arithmetic on floats, for scalars and vectors."""

from __future__ import annotations

from math import copysign, isnan

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.dialects.vector import BroadcastOp
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.llvm.emitter import LlvmEmitter, Printer
from landbridge.codegen.llvm.narrow_floats import in_float, is_narrow, widen
from landbridge.codegen.llvm.types import element_of, splat, with_element
from landbridge.codegen.printing import constant_values, predicate

# Flags that let LLVM assume away NaN or infinities are never passed on: they gave NaN on real networks.
_HONOURED = {
    FastMathFlag.REASSOC: "reassoc",
    FastMathFlag.NO_SIGNED_ZEROS: "nsz",
    FastMathFlag.ALLOW_RECIP: "arcp",
    FastMathFlag.ALLOW_CONTRACT: "contract",
}


def fast_flags(op: Operation) -> str:
    """Returns the fast-math flags of ``op`` as LLVM text with a trailing blank, or ``""``."""
    attr = op.properties.get("fastmath") or op.attributes.get("fastmath")
    if not isinstance(attr, FastMathFlagsAttr) or not attr.data:
        return ""
    return "".join(f"{text} " for flag, text in _HONOURED.items() if flag in attr.data)


def _float_binary(opcode: str) -> Printer:
    def emit(e: LlvmEmitter, op: Operation) -> None:
        flags = fast_flags(op)
        in_float(e, op, lambda kind, names: f"{opcode} {flags}{kind} {names[0]}, {names[1]}")

    return emit


_plain_quotient = _float_binary("fdiv")
#: Divisors below this have reciprocals that are far from denormal.
_LARGE_DIVISOR = 2.0**64
#: More than a quotient by a constant leaves over of any number: half a unit in the last place, times the divisor.
_MORE_THAN_LEFT = 2.0**127


def _sum(opcode: str) -> Printer:
    """Returns a printer of addition or subtraction, with a product fused where the processor supports that.

    Products are chosen here, because LLVM's choice depends on the code around: equal terms might give different sums.
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
    """Returns whether ``value`` is a product that has no other reader and need not be rounded."""
    owner = value.owner
    return type(owner) is arith.MulfOp and "contract" in fast_flags(owner) and value.has_one_use()


def _quotient(e: LlvmEmitter, op: Operation) -> None:
    """Emits a quotient; if division is slow and the divisor is constant, as a product that its remainder corrects.

    With the reciprocal rounded to nearest, the second product is the quotient rounded to nearest (Markstein,
    "Computation of elementary functions on the IBM RISC System/6000 processor", 1990, theorem 7). The remainder of
    infinity is NaN; it is replaced by a number, which leaves infinity unchanged. A remainder of zero is +0: subtracted
    with a positive divisor's reciprocal, or added with a negative one's, it preserves the sign of a zero quotient. Near
    the smallest floats the remainder is denormal and may be flushed: the error is then within 1.5 units in the last
    place.
    """
    divisor, kind = splat_value(op.operands[1]), e.type(op.results[0].type)
    usual = divisor is not None and 1 < abs(divisor) < _LARGE_DIVISOR and element_of(kind) == "float"
    if not (usual and e.module.isa.slow_division and e.module.isa.fma):
        _plain_quotient(e, op)
        return
    assert divisor is not None
    x = e.names[op.operands[0]]
    inverse, size = splat(float(np.float32(1) / np.float32(divisor)), kind), splat(abs(divisor), kind)
    first = e.emit(f"fmul {kind} {x}, {inverse}")
    dividend = x if divisor < 0 else e.emit(f"fneg {kind} {x}")
    left = e.emit(e.intrinsic("fma", kind, [size, first, dividend]))
    left = e.emit(e.intrinsic("minnum", kind, [left, splat(_MORE_THAN_LEFT, kind)]))
    if divisor > 0:
        left = e.emit(f"fneg {kind} {left}")
    e.set(op.results[0], e.intrinsic("fma", kind, [left, inverse, first]))


def _float_intrinsic(stem: str) -> Printer:
    def emit(e: LlvmEmitter, op: Operation) -> None:
        flags = fast_flags(op)
        in_float(e, op, lambda kind, names: e.intrinsic(stem, kind, names, flags))

    return emit


def _extremum(stem: str, beats: str) -> Printer:
    """Returns a printer of NaN-propagating maximum or minimum; ``beats`` is the comparison by which an operand wins.

    Against a constant it is ``constant beats x ? constant : x``: one machine instruction, where the general form takes
    several. ``beats`` is also right for two zeros of different sign, unless the constant must win that tie: then
    equality wins too (under ``nsz`` a cheaper instruction is used).
    """
    general = _float_intrinsic(stem)
    must_win = 1.0 if stem == "maximum" else -1.0

    def emit(e: LlvmEmitter, op: Operation) -> None:
        for constant, other in (op.operands, reversed(op.operands)):
            value = None if e.module.isa.extrema else splat_value(constant)
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


def splat_value(value: SSAValue) -> float | None:
    """Returns the number that every lane of a constant or of its broadcast has; None for other values."""
    op = value.owner
    if isinstance(op, BroadcastOp):
        op = op.source.owner
    if not isinstance(op, arith.ConstantOp):
        return None
    values = constant_values(op, "LLVM")
    return float(values[0]) if len(values) == 1 else None


def _compare_float(e: LlvmEmitter, op: Operation) -> None:
    (kind, a), (_, b) = (widen(e, e.type(o.type), e.names[o]) for o in op.operands)
    e.set(op.results[0], f"fcmp {fast_flags(op)}{predicate(op)} {kind} {a}, {b}")


def _negate(e: LlvmEmitter, op: Operation) -> None:
    a = op.operands[0]
    kind = e.type(a.type)
    if element_of(kind) == "bfloat":  # the text has it as its bits
        e.set(op.results[0], f"xor {kind} {e.names[a]}, {splat(-0.0, kind)}")
        return
    e.set(op.results[0], f"fneg {fast_flags(op)}{e.type(a.type)} {e.names[a]}")


PRINTERS: dict[type[Operation], Printer] = {
    arith.CmpfOp: _compare_float,
    arith.AddfOp: _sum("fadd"),
    arith.SubfOp: _sum("fsub"),
    arith.MulfOp: _float_binary("fmul"),
    arith.DivfOp: _quotient,
    arith.NegfOp: _negate,
    arith.MaximumfOp: _extremum("maximum", "ogt"),
    arith.MinimumfOp: _extremum("minimum", "olt"),
    arith.MaxnumfOp: _float_intrinsic("maxnum"),
    arith.MinnumfOp: _float_intrinsic("minnum"),
}
