"""Writes straight-line float code, the terms of math expansions, as OpenCL C.

Masks are what comparisons give: of scalars 0 or 1, of vectors lanes of 0 or -1 as wide as what is compared (OpenCL C
3.0 specification, section 6.5.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from landbridge.codegen.c.types import CType, literal
from landbridge.codegen.c.unit import CUnit
from landbridge.codegen.opencl.unit import ELEMENTS
from landbridge.expansions.functions import EVERY, LARGE
from landbridge.expansions.terms import Term, TermBody

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^", "shl": "<<"}
_COMPARE = {"olt": "{0} < {1}", "ogt": "{0} > {1}", "oeq": "{0} == {1}", "uge": "!({0} < {1})", "uno": "isnan({0})"}
_COMPARE |= {"one": "islessgreater({0}, {1})", "eq": "{0} == {1}", "ne": "{0} != {1}"}
_CALLS = {"fma": "lb_fma", "exact_fma": "fma"}


class OpenCLBody(TermBody):
    """The statements of a function whose arguments have ``lanes`` lanes; kinds are CTypes, names C expressions."""

    fused = True
    exact = True

    def __init__(self, lanes: int, unit: CUnit) -> None:
        self.lanes = lanes
        self.unit = unit
        self.lines: list[str] = []
        self._count = 0

    def _set(self, text: str, kind: CType) -> Term:
        self._count += 1
        name = f"t{self._count}"
        self.lines.append(f"const {self.unit.use(kind).text} {name} = {text};")
        return Term(self, name, kind)

    def _mask(self, text: str) -> Term:
        return self._set(text, CType("s32", self.lanes))

    def argument(self, name: str) -> Term:
        """Returns a parameter, of f32."""
        return Term(self, name, CType("f32", self.lanes))

    def element(self, kind: Any) -> str:
        """Returns the element of a CType."""
        found: str = kind.element
        return found

    def literal(self, value: float | int, kind: Any) -> Term:
        """Returns a constant of ``kind``."""
        text = literal(value, kind.element)
        return Term(self, f"(({self.unit.use(kind).text}){text})" if self.lanes else text, kind)

    def binary(self, opcode: str, a: Term, b: Term) -> Term:
        """Returns one operator; integers are unsigned except where they are shifted right."""
        if opcode == "ashr":
            return self._set(self._unsigned(f"{self._signed(a)} >> {self._signed(b)}"), a.kind)
        return self._set(f"{a.name} {_INFIX[opcode]} {b.name}", a.kind)

    def negate(self, a: Term) -> Term:
        """Returns the negation."""
        return self._set(f"-{a.name}", a.kind)

    def compare(self, predicate: str, a: Term, b: Term) -> Term:
        """Returns a mask."""
        if predicate in ("slt", "sgt"):
            return self._mask(f"{self._signed(a)} {'<' if predicate == 'slt' else '>'} {self._signed(b)}")
        return self._mask(_COMPARE[predicate].format(a.name, b.name))

    def select(self, mask: Term, a: Term, b: Term) -> Term:
        """Selects lane by lane."""
        if self.lanes:
            return self._set(f"select({b.name}, {a.name}, {mask.name})", a.kind)
        return self._set(f"{mask.name} ? {a.name} : {b.name}", a.kind)

    def call(self, stem: str, operands: Sequence[Term]) -> Term:
        """Calls a built-in function."""
        name = _CALLS.get(stem, stem)
        return self._set(f"{name}({', '.join(o.name for o in operands)})", operands[0].kind)

    def convert(self, opcode: str, a: Term, element: str) -> Term:
        """Converts bits to another type, or signed integers to floats."""
        kind = a.kind.of(element)
        name = self._native(kind.element)
        return self._set(f"as_{name}({a.name})" if opcode == "bitcast" else f"convert_{name}({self._signed(a)})", kind)

    def leave(self, unless: Term, result: Term) -> None:
        """Returns ``result`` from the function here where no lane of a mask is set."""
        any_lane = f"any({unless.name})" if self.lanes else unless.name
        self.lines.append(f"if (!{any_lane}) return {result.name};")

    def _native(self, element: str) -> str:
        return f"{ELEMENTS[element]}{self.lanes or ''}"

    def _signed(self, a: Term) -> str:
        return f"as_{self._native('s32')}({a.name})"

    def _unsigned(self, text: str) -> str:
        return f"as_{self._native('i32')}({text})"


def function(unit: CUnit, name: str, lanes: int) -> str:
    """Returns the name of a function of f32, or of vectors of it, that computes ``name``; defined in ``unit``."""
    kind = unit.use(CType("f32", lanes))
    symbol = f"lb_{name}_{kind.text}"

    def text() -> str:
        body = OpenCLBody(lanes, unit)
        parameters = ["a", "b"] if name in ("pow", "atan2", "fmod") else ["a"]
        arguments = [body.argument(p) for p in parameters]
        result = EVERY[name](*arguments)
        if name in LARGE:
            beyond, continuation = LARGE[name]
            large = beyond(*arguments)
            body.leave(large, result)
            result = large.where(continuation(*arguments), result)
        head = f"LB_INLINE {kind.text} {symbol}({', '.join(f'{kind.text} {p}' for p in parameters)}) {{"
        return "\n".join([head, *(f"  {line}" for line in body.lines), f"  return {result.name};", "}"])

    return unit.define(symbol, text)
