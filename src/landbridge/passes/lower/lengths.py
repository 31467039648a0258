"""Arithmetic for Sizes that depend on lengths, which kernels load from their operands."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.ir.length_ops import SizedByOp
from landbridge.sizes.terms import AboveZero, Atom, Clamped, Floor, Symbol, Terms

_INDEX = IndexType()


def compute_sizes(lowered: func.FuncOp) -> None:
    """Replace the Sizes of a lowered function that depend on lengths by arithmetic on these."""
    for op in [op for op in lowered.walk() if isinstance(op, SizedByOp)]:
        computed = _Computed(op.by_name)
        result = computed.terms(op.size.data.terms)
        Rewriter.replace_op(op, computed.operations, [result])


class _Computed:
    """Collects the ``operations`` that compute terms as indices, where dimensions have the ``values``, by name."""

    def __init__(self, values: Mapping[str, SSAValue]) -> None:
        self._values = values
        self.operations: list[Operation] = []

    def terms(self, terms: Terms) -> SSAValue:
        """Returns the value of ``terms``."""
        total: SSAValue | None = None
        for product, coefficient in terms:
            term: SSAValue | None = None
            for atom, power in product:
                for _ in range(power):
                    value = self._atom(atom)
                    term = value if term is None else self._add(arith.MuliOp(term, value))
            if term is None or coefficient != 1:
                number = self._number(coefficient)
                term = number if term is None else self._add(arith.MuliOp(term, number))
            total = term if total is None else self._add(arith.AddiOp(total, term))
        return self._number(0) if total is None else total

    def _atom(self, atom: Atom) -> SSAValue:
        match atom:
            case Symbol(name, unit=unit):
                value = self._values[name]
                return value if unit == 1 else self._add(arith.FloorDivSIOp(value, self._number(unit)))
            case Floor(numerator, divisor):
                return self._add(arith.FloorDivSIOp(self.terms(numerator), self.terms(divisor)))
            case AboveZero(inner):
                return self._add(arith.MaxSIOp(self.terms(inner), self._number(0)))
            case Clamped(inner, low, high):
                value = self._add(arith.MaxSIOp(self.terms(inner), self._number(low)))
                return value if high is None else self._add(arith.MinSIOp(value, self._number(high)))

    def _number(self, number: int) -> SSAValue:
        return self._add(arith.ConstantOp(IntegerAttr(number, _INDEX)))

    def _add(self, op: Operation) -> SSAValue:
        self.operations.append(op)
        return op.results[0]
