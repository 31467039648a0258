"""Writes straight-line float code, the terms of math expansions, as C of scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from landbridge.codegen.c.types import CType, literal
from landbridge.expansions.terms import Term, TermBody

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^", "shl": "<<"}
_COMPARE = {
    "olt": "{0} < {1}",
    "ogt": "{0} > {1}",
    "oeq": "{0} == {1}",
    "one": "{0} < {1} || {0} > {1}",
    "uge": "!({0} < {1})",
    "uno": "{0} != {0} || {1} != {1}",
    "slt": "(int32_t){0} < (int32_t){1}",
    "sgt": "(int32_t){0} > (int32_t){1}",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
}


class ScalarBody(TermBody):
    """The statements of a function of f32; kinds are CTypes, names C expressions.

    A fused product rounds twice where the processor has none, so products whose error counts are split instead.
    """

    fused = True

    def __init__(self) -> None:
        self.lines: list[str] = []

    def _set(self, text: str, kind: CType) -> Term:
        name = f"t{len(self.lines) + 1}"
        self.lines.append(f"const {kind.text} {name} = {text};")
        return Term(self, name, kind)

    def argument(self, name: str) -> Term:
        """Returns a parameter, of f32."""
        return Term(self, name, CType("f32"))

    def element(self, kind: Any) -> str:
        """Returns the element of a CType."""
        found: str = kind.element
        return found

    def literal(self, value: float | int, kind: Any) -> Term:
        """Returns a constant of ``kind``."""
        return Term(self, literal(value, kind.element), kind)

    def binary(self, opcode: str, a: Term, b: Term) -> Term:
        """Returns one operator; integers are unsigned except where they are shifted right."""
        if opcode == "ashr":
            return self._set(f"(uint32_t)((int32_t){a.name} >> {b.name})", a.kind)
        return self._set(f"{a.name} {_INFIX[opcode]} {b.name}", a.kind)

    def negate(self, a: Term) -> Term:
        """Returns the negation."""
        return self._set(f"-{a.name}", a.kind)

    def compare(self, predicate: str, a: Term, b: Term) -> Term:
        """Returns a mask, 0 or 1."""
        return self._set(_COMPARE[predicate].format(a.name, b.name), CType("i1"))

    def select(self, mask: Term, a: Term, b: Term) -> Term:
        """Selects by a mask."""
        return self._set(f"{mask.name} ? {a.name} : {b.name}", a.kind)

    def call(self, stem: str, operands: Sequence[Term]) -> Term:
        """Calls a function of the prelude."""
        return self._set(f"{stem}f({', '.join(o.name for o in operands)})", operands[0].kind)

    def convert(self, opcode: str, a: Term, element: str) -> Term:
        """Converts bits to another type, or signed integers to floats."""
        kind = a.kind.of(element)
        if opcode == "bitcast":
            return self._set(f"lb_bits_{a.kind.element}_{element}({a.name})", kind)
        return self._set(f"({kind.scalar})(int32_t){a.name}", kind)

    def leave(self, unless: Term, result: Term) -> None:
        """Returns ``result`` from the function here where a mask is not set."""
        self.lines.append(f"if (!{unless.name}) return {result.name};")
