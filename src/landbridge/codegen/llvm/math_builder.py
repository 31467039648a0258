"""Writing straight-line float code over scalars or vectors as Python expressions.

A Body collects the LLVM instructions of one helper function; its Terms overload Python's operators, so that a
polynomial reads like one. Python numbers take the type of the Term beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.codegen.llvm.types import is_float, lanes_of, splat, suffix, with_element


class Body:
    """The instructions of a helper whose argument lanes have the LLVM type ``kind`` (scalar or vector).

    ``fused``: the CPU has a fused multiply-add; without one, ``Term.fma`` rounds twice.
    """

    def __init__(self, kind: str, fused: bool = True) -> None:
        self.kind = kind
        self.fused = fused
        self.lanes = lanes_of(kind)
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self._count = 0

    def emit(self, text: str, kind: str) -> Term:
        """The Term that instruction ``text`` of type ``kind`` defines."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {text}")
        return Term(self, name, kind)

    def constant(self, value: float | int, element: str) -> Term:
        """``value`` in every lane, of scalar type ``element``."""
        kind = with_element(self.kind, element)
        return Term(self, splat(value, kind), kind)

    def call(self, stem: str, operands: Sequence[Term]) -> Term:
        """``llvm.<stem>`` overloaded on the type of its operands."""
        kind = operands[0].kind
        symbol = f"llvm.{stem}.{suffix(kind)}"
        self.declarations[symbol] = f"declare {kind} @{symbol}({', '.join([kind] * len(operands))})"
        return self.emit(f"call {kind} @{symbol}({', '.join(f'{kind} {o.name}' for o in operands)})", kind)

    def any(self, mask: Term) -> Term:
        """Whether any lane of ``mask`` is set, as a scalar i1."""
        if not self.lanes:
            return mask
        symbol = f"llvm.vector.reduce.or.{suffix(mask.kind)}"
        self.declarations[symbol] = f"declare i1 @{symbol}({mask.kind})"
        return self.emit(f"call i1 @{symbol}({mask.kind} {mask.name})", "i1")


class Term:
    """A value of a Body. ``+ - *`` and ``/`` follow its type; comparisons give masks of i1 lanes."""

    __slots__ = ("body", "kind", "name")

    def __init__(self, body: Body, name: str, kind: str) -> None:
        self.body, self.name, self.kind = body, name, kind

    def _other(self, other: Term | float | int) -> Term:
        return other if isinstance(other, Term) else Term(self.body, splat(other, self.kind), self.kind)

    def _op(self, opcode: str, other: Term | float | int) -> Term:
        prefix = "f" if is_float(self.kind) and opcode in ("add", "sub", "mul", "div") else ""
        return self.body.emit(f"{prefix}{opcode} {self.kind} {self.name}, {self._other(other).name}", self.kind)

    def _compare(self, predicate: str, other: Term | float | int) -> Term:
        opcode = "fcmp" if is_float(self.kind) else "icmp"
        text = f"{opcode} {predicate} {self.kind} {self.name}, {self._other(other).name}"
        return self.body.emit(text, with_element(self.kind, "i1"))

    def __add__(self, other: Term | float | int) -> Term:
        return self._op("add", other)

    def __sub__(self, other: Term | float | int) -> Term:
        return self._op("sub", other)

    def __rsub__(self, other: float | int) -> Term:
        return self._other(other)._op("sub", self)

    def __mul__(self, other: Term | float | int) -> Term:
        return self._op("mul", other)

    def __truediv__(self, other: Term | float | int) -> Term:
        return self._op("div", other)

    def __rtruediv__(self, other: float | int) -> Term:
        return self._other(other)._op("div", self)

    def __neg__(self) -> Term:
        return self.body.emit(f"fneg {self.kind} {self.name}", self.kind)

    def __and__(self, other: Term | int) -> Term:
        return self._op("and", other)

    def __or__(self, other: Term | int) -> Term:
        return self._op("or", other)

    def __xor__(self, other: Term | int) -> Term:
        return self._op("xor", other)

    def __lshift__(self, bits: int) -> Term:
        return self._op("shl", bits)

    def __rshift__(self, bits: int) -> Term:
        return self._op("ashr", bits)

    def less(self, other: Term | float) -> Term:
        """Lanes where self < other; false for NaN."""
        return self._compare("olt" if is_float(self.kind) else "slt", other)

    def greater(self, other: Term | float) -> Term:
        """Lanes where self > other; false for NaN."""
        return self._compare("ogt" if is_float(self.kind) else "sgt", other)

    def equal(self, other: Term | float) -> Term:
        """Lanes where self == other; false for NaN."""
        return self._compare("oeq" if is_float(self.kind) else "eq", other)

    def differs(self, other: Term | float) -> Term:
        """Lanes where self != other; false for NaN."""
        return self._compare("one" if is_float(self.kind) else "ne", other)

    def not_less(self, other: Term | float) -> Term:
        """Lanes where self >= other or either is NaN."""
        return self._compare("uge", other)

    def where(self, a: Term, b: Term | float | int) -> Term:
        """Lane by lane, ``a`` where this mask is set, else ``b``."""
        text = f"select {self.kind} {self.name}, {a.kind} {a.name}, {a.kind} {a._other(b).name}"
        return self.body.emit(text, a.kind)

    def not_number(self) -> Term:
        """Lanes that are NaN."""
        return self._compare("uno", self)

    def at_most(self, bound: float) -> Term:
        """min(self, bound); NaN stays NaN."""
        return self.greater(bound).where(self._other(bound), self)

    def at_least(self, bound: float) -> Term:
        """max(self, bound); NaN stays NaN."""
        return self.less(bound).where(self._other(bound), self)

    def fma(self, factor: Term | float, addend: Term | float) -> Term:
        """self * factor + addend, rounded once where the CPU can."""
        if not self.body.fused:
            return self * factor + addend
        return self.body.call("fma", [self, self._other(factor), self._other(addend)])

    def abs(self) -> Term:
        """Magnitude."""
        return self.body.call("fabs", [self])

    def trunc(self) -> Term:
        """Rounded towards zero."""
        return self.body.call("trunc", [self])

    def copysign(self, sign: Term) -> Term:
        """Magnitude of self with the sign of ``sign``."""
        return self.body.call("copysign", [self, sign])

    def bits(self) -> Term:
        """The lanes as integers of the same width."""
        return self.convert("bitcast", "i32" if self.kind.rstrip(">").endswith("float") else "i64")

    def as_float(self) -> Term:
        """Integer lanes as floats of the same width, bit for bit."""
        return self.convert("bitcast", "float" if self.kind.rstrip(">").endswith("i32") else "double")

    def to_float(self) -> Term:
        """Signed integer lanes converted to f32."""
        return self.convert("sitofp", "float")

    def to_double(self) -> Term:
        """f32 or integer lanes converted to f64."""
        return self.convert("fpext" if is_float(self.kind) else "sitofp", "double")

    def to_single(self) -> Term:
        """f64 lanes rounded to f32."""
        return self.convert("fptrunc", "float")

    def poly(self, *coefficients: float) -> Term:
        """``c0 + c1 self + c2 self**2 + ...`` by Horner's scheme, one fma a step."""
        total = self._other(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = total.fma(self, c)
        return total

    def convert(self, opcode: str, element: str) -> Term:
        """The lanes through LLVM's conversion ``opcode`` to scalar type ``element``."""
        kind = with_element(self.kind, element)
        return self.body.emit(f"{opcode} {self.kind} {self.name} to {kind}", kind)
