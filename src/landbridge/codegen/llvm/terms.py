"""Writes straight-line float code as LLVM instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from landbridge.codegen.llvm.types import SPELLINGS, element_of, is_float, lanes_of, splat, suffix, with_element
from landbridge.expansions.terms import Term, TermBody

#: Lanes of f32 that one instruction of x86-64 multiplies by powers of 2, the longest last.
_SCALED_LANES = (4, 8, 16)


class LlvmBody(TermBody):
    """The instructions of a helper whose argument lanes have the LLVM type ``kind`` (scalar or vector).

    Kinds of its Terms are LLVM types, their names operands.
    """

    def __init__(self, kind: str, fused: bool = True, extrema: bool = False, scale_bits: int = 0) -> None:
        self.kind = kind
        self.fused = self.exact = fused
        self.extrema = extrema
        self.lanes = lanes_of(kind)
        self.scales = self.lanes in _SCALED_LANES and 32 * self.lanes <= scale_bits
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self._count = 0

    def emit(self, text: str, kind: str) -> Term:
        """Returns the Term that instruction ``text`` of type ``kind`` defines."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {text}")
        return Term(self, name, kind)

    def element(self, kind: Any) -> str:
        """Returns the element of an LLVM type."""
        return suffix(element_of(kind))

    def literal(self, value: float | int, kind: Any) -> Term:
        """Returns a literal operand of type ``kind``."""
        return Term(self, splat(value, kind), kind)

    def binary(self, opcode: str, a: Term, b: Term) -> Term:
        """Emits one instruction."""
        prefix = "f" if is_float(a.kind) and opcode in ("add", "sub", "mul", "div") else ""
        return self.emit(f"{prefix}{opcode} {a.kind} {a.name}, {b.name}", a.kind)

    def negate(self, a: Term) -> Term:
        """Emits ``fneg``."""
        return self.emit(f"fneg {a.kind} {a.name}", a.kind)

    def compare(self, predicate: str, a: Term, b: Term) -> Term:
        """Emits ``fcmp`` or ``icmp``."""
        opcode = "fcmp" if is_float(a.kind) else "icmp"
        return self.emit(f"{opcode} {predicate} {a.kind} {a.name}, {b.name}", with_element(a.kind, "i1"))

    def select(self, mask: Term, a: Term, b: Term) -> Term:
        """Emits ``select``."""
        return self.emit(f"select {mask.kind} {mask.name}, {a.kind} {a.name}, {b.kind} {b.name}", a.kind)

    def call(self, stem: str, operands: Sequence[Term]) -> Term:
        """Emits a call of ``llvm.<stem>`` overloaded on the type of its operands."""
        kind = operands[0].kind
        if stem == "scale":
            return self._scaled(*operands)
        stem = stem.removeprefix("exact_")
        symbol = f"llvm.{stem}.{suffix(kind)}"
        self.declarations[symbol] = f"declare {kind} @{symbol}({', '.join([kind] * len(operands))})"
        return self.emit(f"call {kind} @{symbol}({', '.join(f'{kind} {o.name}' for o in operands)})", kind)

    def _scaled(self, a: Term, n: Term) -> Term:
        """Emits ``vscalefps`` on all lanes, with the usual rounding."""
        kind, mask = a.kind, f"i{max(self.lanes, 8)}"
        # shorter vectors use the usual rounding anyway
        rounding = ("i32", "i32 4") if self.lanes == _SCALED_LANES[-1] else ()
        symbol = f"llvm.x86.avx512.mask.scalef.ps.{32 * self.lanes}"
        self.declarations[symbol] = f"declare {kind} @{symbol}({', '.join([kind, kind, kind, mask, *rounding[:1]])})"
        given = [f"{kind} {a.name}", f"{kind} {n.name}", f"{kind} zeroinitializer", f"{mask} -1", *rounding[1:]]
        return self.emit(f"call {kind} @{symbol}({', '.join(given)})", kind)

    def convert(self, opcode: str, a: Term, element: str) -> Term:
        """Emits one instruction."""
        kind = with_element(a.kind, SPELLINGS.get(element, element))
        return self.emit(f"{opcode} {a.kind} {a.name} to {kind}", kind)

    def any(self, mask: Term) -> Term:
        """Returns whether any lane of ``mask`` is set, as a scalar i1."""
        if not self.lanes:
            return mask
        symbol = f"llvm.vector.reduce.or.{suffix(mask.kind)}"
        self.declarations[symbol] = f"declare i1 @{symbol}({mask.kind})"
        return self.emit(f"call i1 @{symbol}({mask.kind} {mask.name})", "i1")
