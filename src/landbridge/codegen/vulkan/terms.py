"""Writes straight-line float code, the terms of math expansions, as SPIR-V."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from landbridge.codegen.vulkan import glsl
from landbridge.codegen.vulkan.emitter import SpirvEmitter
from landbridge.executable.spirv import Op
from landbridge.expansions import narrow
from landbridge.expansions.terms import Term, TermBody

_FLOAT = {"add": Op.FAdd, "sub": Op.FSub, "mul": Op.FMul, "div": Op.FDiv}
_INTEGER = {
    "add": Op.IAdd,
    "sub": Op.ISub,
    "mul": Op.IMul,
    "and": Op.BitwiseAnd,
    "or": Op.BitwiseOr,
    "xor": Op.BitwiseXor,
    "shl": Op.ShiftLeftLogical,
    "ashr": Op.ShiftRightArithmetic,
}
_MASKS = {"and": Op.LogicalAnd, "or": Op.LogicalOr, "xor": Op.LogicalNotEqual}
_COMPARE = {
    "olt": Op.FOrdLessThan,
    "ogt": Op.FOrdGreaterThan,
    "oeq": Op.FOrdEqual,
    "one": Op.FOrdNotEqual,
    "uge": Op.FUnordGreaterThanEqual,
    "slt": Op.SLessThan,
    "sgt": Op.SGreaterThan,
    "eq": Op.IEqual,
    "ne": Op.INotEqual,
}
_CONVERT = {"bitcast": Op.Bitcast, "sitofp": Op.ConvertSToF, "fpext": Op.FConvert, "fptrunc": Op.FConvert}


class SpirvBody(TermBody):
    """Instructions of the kernel that ``emitter`` writes; kinds are its elements, names ids."""

    fused = True

    def __init__(self, emitter: SpirvEmitter) -> None:
        self.emitter = emitter

    def term(self, found: int, element: str) -> Term:
        """Returns a value of the kernel."""
        return Term(self, found, element)

    def element(self, kind: Any) -> str:
        """Returns ``kind``, which is its element."""
        return str(kind)

    def literal(self, value: float | int, kind: Any) -> Term:
        """Returns a constant of element ``kind``."""
        return Term(self, self.emitter.constant(value, kind), kind)

    def binary(self, opcode: str, a: Term, b: Term) -> Term:
        """Emits one instruction."""
        table = _FLOAT if a.kind[0] == "f" else _MASKS if a.kind == "i1" else _INTEGER
        return Term(self, self.emitter.emit(table[opcode], a.kind, a.name, b.name), a.kind)

    def negate(self, a: Term) -> Term:
        """Emits ``OpFNegate``."""
        return Term(self, self.emitter.emit(Op.FNegate, a.kind, a.name), a.kind)

    def compare(self, predicate: str, a: Term, b: Term) -> Term:
        """Emits one instruction; NaN has a separate test."""
        if predicate == "uno":
            nans = [self.emitter.emit(Op.IsNan, "i1", x.name) for x in dict.fromkeys((a, b))]
            found = nans[0] if len(nans) == 1 else self.emitter.emit(Op.LogicalOr, "i1", *nans)
            return Term(self, found, "i1")
        return Term(self, self.emitter.emit(_COMPARE[predicate], "i1", a.name, b.name), "i1")

    def select(self, mask: Term, a: Term, b: Term) -> Term:
        """Emits ``OpSelect``."""
        return Term(self, self.emitter.emit(Op.Select, a.kind, mask.name, a.name, b.name), a.kind)

    def call(self, stem: str, operands: Sequence[Term]) -> Term:
        """Emits an instruction of the library; signs are copied bit by bit."""
        kind = operands[0].kind
        if stem == "copysign":
            return copysign(*operands)
        names = [operand.name for operand in operands]
        return Term(self, self.emitter.library(glsl.OPCODES[stem], kind, *names), kind)

    def convert(self, opcode: str, a: Term, element: str) -> Term:
        """Emits one instruction."""
        return Term(self, self.emitter.emit(_CONVERT[opcode], element, a.name), element)


def copysign(magnitude: Term, sign: Term) -> Term:
    """Returns the bits of ``magnitude`` with the highest one of ``sign``."""
    highest = -1 << (31 if magnitude.kind == "f32" else 63)
    return ((magnitude.bits() & ~highest) | (sign.bits() & highest)).as_float()


def widened(e: SpirvEmitter, found: int, element: str) -> int:
    """Returns a 16-bit float, kept as its bits, as f32."""
    bits = SpirvBody(e).term(e.emit(Op.UConvert, "i32", found), "i32")
    return int(narrow.widened(bits, element).name)


def narrowed(e: SpirvEmitter, found: int, source: str, element: str) -> int:
    """Returns an f32 or f64 rounded to a 16-bit float, as its bits."""
    bits = narrow.narrowed(SpirvBody(e).term(found, source), element)
    return e.emit(Op.UConvert, "i16", bits.name)


def expanded(e: SpirvEmitter, expansion: Callable[..., Term], operands: Sequence[int], element: str) -> int:
    """Returns the id of an expansion of ``operands``."""
    body = SpirvBody(e)
    return int(expansion(*(body.term(operand, element) for operand in operands)).name)
