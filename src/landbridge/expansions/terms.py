"""Terms, by which code generators write straight-line float code, over scalars or vectors, as Python expressions.

A TermBody collects the instructions of one function; its Terms overload Python's operators, so that a
polynomial reads like one. Python numbers take the type of the Term beside them. Elements are ``f32 f64 i32 i64``;
operations and conversions go by the names LLVM gives them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class TermBody(ABC):
    """Writes the instructions. ``fused``: it has a fused multiply-add; without one ``Term.fma`` rounds twice."""

    fused: bool
    #: Whether ``exact_fma`` of a TermBody surely rounds once.
    exact: bool = False
    #: Whether it has an instruction each for the larger and the smaller of two numbers, NaN if one is.
    extrema: bool = False
    #: Whether one instruction gives a f32 times 2**n, rounded once, for a whole n that is a f32 too.
    scales: bool = False

    @abstractmethod
    def element(self, kind: Any) -> str:
        """Returns the element of a Term's kind."""

    @abstractmethod
    def literal(self, value: float | int, kind: Any) -> Term:
        """Computes ``value`` in every lane, of the kind of another Term."""

    @abstractmethod
    def binary(self, opcode: str, a: Term, b: Term) -> Term:
        """Computes ``add sub mul div`` of floats or integers, ``and or xor shl ashr`` of integers."""

    @abstractmethod
    def negate(self, a: Term) -> Term:
        """Returns the negation of floats."""

    @abstractmethod
    def compare(self, predicate: str, a: Term, b: Term) -> Term:
        """Computes ``olt ogt oeq one uge uno`` of floats, ``slt sgt eq ne`` of integers, as a mask."""

    @abstractmethod
    def select(self, mask: Term, a: Term, b: Term) -> Term:
        """Returns, lane by lane, ``a`` where ``mask`` is set, else ``b``."""

    @abstractmethod
    def call(self, stem: str, operands: Sequence[Term]) -> Term:
        """Computes ``fma exact_fma fabs trunc copysign`` of floats, ``exact_fma`` where it is ``exact``; ``minimum``
        and ``maximum`` where it has ``extrema``, ``scale`` where it ``scales``.
        """

    @abstractmethod
    def convert(self, opcode: str, a: Term, element: str) -> Term:
        """Computes ``a`` through ``bitcast fpext fptrunc sitofp`` to lanes of ``element``."""


class Term:
    """A value of a body: ``name`` and ``kind`` are the body's own. ``+ - *`` and ``/`` follow its type; comparisons
    give masks."""

    __slots__ = ("body", "kind", "name")

    def __init__(self, body: TermBody, name: Any, kind: Any) -> None:
        self.body, self.name, self.kind = body, name, kind

    def like(self, other: Term | float | int) -> Term:
        """Computes a number in every lane, of the type of this Term; a Term as it is."""
        return other if isinstance(other, Term) else self.body.literal(other, self.kind)

    def _op(self, opcode: str, other: Term | float | int) -> Term:
        return self.body.binary(opcode, self, self.like(other))

    def _compare(self, predicate: str, other: Term | float | int) -> Term:
        return self.body.compare(predicate, self, self.like(other))

    @property
    def _is_float(self) -> bool:
        return self.body.element(self.kind)[0] == "f"

    @property
    def is_double(self) -> bool:
        """Returns whether lanes are f64."""
        return self.body.element(self.kind) == "f64"

    def __add__(self, other: Term | float | int) -> Term:
        return self._op("add", other)

    def __sub__(self, other: Term | float | int) -> Term:
        return self._op("sub", other)

    def __rsub__(self, other: float | int) -> Term:
        return self.like(other)._op("sub", self)

    def __mul__(self, other: Term | float | int) -> Term:
        return self._op("mul", other)

    def __truediv__(self, other: Term | float | int) -> Term:
        return self._op("div", other)

    def __rtruediv__(self, other: float | int) -> Term:
        return self.like(other)._op("div", self)

    def __neg__(self) -> Term:
        return self.body.negate(self)

    def __and__(self, other: Term | int) -> Term:
        return self._op("and", other)

    def __or__(self, other: Term | int) -> Term:
        return self._op("or", other)

    def __xor__(self, other: Term | int) -> Term:
        return self._op("xor", other)

    def __lshift__(self, bits: Term | int) -> Term:
        return self._op("shl", bits)

    def __rshift__(self, bits: Term | int) -> Term:
        return self._op("ashr", bits)

    def less(self, other: Term | float) -> Term:
        """Computes lanes where self < other; false for NaN."""
        return self._compare("olt" if self._is_float else "slt", other)

    def greater(self, other: Term | float) -> Term:
        """Computes lanes where self > other; false for NaN."""
        return self._compare("ogt" if self._is_float else "sgt", other)

    def equal(self, other: Term | float) -> Term:
        """Computes lanes where self == other; false for NaN."""
        return self._compare("oeq" if self._is_float else "eq", other)

    def differs(self, other: Term | float) -> Term:
        """Computes lanes where self != other; false for NaN."""
        return self._compare("one" if self._is_float else "ne", other)

    def not_less(self, other: Term | float) -> Term:
        """Computes lanes where self >= other or either is NaN."""
        return self._compare("uge", other)

    def where(self, a: Term, b: Term | float | int) -> Term:
        """Returns, lane by lane, ``a`` where this mask is set, else ``b``."""
        return self.body.select(self, a, a.like(b))

    def not_number(self) -> Term:
        """Computes lanes that are NaN."""
        return self._compare("uno", self)

    def at_most(self, bound: float) -> Term:
        """Computes min(self, bound) for a bound that is not 0; NaN stays NaN."""
        if self.body.extrema:
            return self.body.call("minimum", [self, self.like(bound)])
        return self.greater(bound).where(self.like(bound), self)

    def at_least(self, bound: float) -> Term:
        """Computes max(self, bound) for a bound that is not 0; NaN stays NaN."""
        if self.body.extrema:
            return self.body.call("maximum", [self, self.like(bound)])
        return self.less(bound).where(self.like(bound), self)

    def fma(self, factor: Term | float, addend: Term | float) -> Term:
        """Computes self * factor + addend, rounded once where the CPU can."""
        if not self.body.fused:
            return self * factor + addend
        return self.body.call("fma", [self, self.like(factor), self.like(addend)])

    def product_error(self, factor: Term | float, product: Term) -> Term:
        """Computes self * factor - product without error, where ``product`` is f32 and near the true one."""
        other = self.like(factor)
        if self.body.exact:
            return self.body.call("exact_fma", [self, other, -product])
        (a, b), (c, d) = self._halves(), other._halves()
        return ((a * c - product) + a * d + b * c) + b * d

    def _halves(self) -> tuple[Term, Term]:
        """Splits f32 into a sum of two numbers of 12 bits, whose products are exact (Dekker, 1971)."""
        high = (self.bits() & -0x1000).as_float()
        return high, self - high

    def abs(self) -> Term:
        """Returns the magnitude."""
        return self.body.call("fabs", [self])

    def trunc(self) -> Term:
        """Rounds towards zero."""
        return self.body.call("trunc", [self])

    def copysign(self, sign: Term) -> Term:
        """Returns the magnitude of self with the sign of ``sign``."""
        return self.body.call("copysign", [self, sign])

    def bits(self) -> Term:
        """Computes the lanes as integers of the same width."""
        return self.convert("bitcast", "i32" if self.body.element(self.kind) == "f32" else "i64")

    def as_float(self) -> Term:
        """Returns integer lanes as floats of the same width, bit for bit."""
        return self.convert("bitcast", "f32" if self.body.element(self.kind) == "i32" else "f64")

    def to_float(self) -> Term:
        """Converts signed integer lanes to f32."""
        return self.convert("sitofp", "f32")

    def to_double(self) -> Term:
        """Converts f32 or integer lanes to f64."""
        return self.convert("fpext" if self._is_float else "sitofp", "f64")

    def to_single(self) -> Term:
        """Rounds f64 lanes to f32."""
        return self.convert("fptrunc", "f32")

    def poly(self, *coefficients: float) -> Term:
        """Computes ``c0 + c1 self + c2 self**2 + ...`` by Horner's scheme, one fma a step."""
        total = self.like(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = total.fma(self, c)
        return total

    def convert(self, opcode: str, element: str) -> Term:
        """Computes the lanes through conversion ``opcode``."""
        return self.body.convert(opcode, self, element)


def as_read(x: Term) -> Term:
    """Returns float ``x`` as arithmetic reads it: zero of its sign where that flushes a denormal number.

    Code that reads bits needs it: arithmetic would take the exponent of a flushed number to be 0.
    """
    return x.equal(0.0).where(x.like(0.0).copysign(x), x)
