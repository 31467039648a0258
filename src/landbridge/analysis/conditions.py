"""Derives linear facts about integers from a condition that is known to hold, or known not to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import SSAValue

from landbridge.analysis.linear_forms import Form, constant

#: The types of values that forms are made of.
INTEGERS = frozenset((IndexType, IntegerType))
_NEGATED = {
    "eq": "ne", "ne": "eq", "slt": "sge", "sge": "slt", "sle": "sgt", "sgt": "sle",
    "ult": "uge", "uge": "ult", "ule": "ugt", "ugt": "ule",
}  # fmt: skip


class KnownForms(Protocol):
    """What ``assumptions_from`` needs to know about the operands of a condition: their forms, and which are
    negative.
    """

    def form(self, value: SSAValue) -> Form:
        """Returns ``value``, an integer, as a linear form over atoms."""

    def is_negative(self, form: Form) -> bool:
        """Returns whether ``form`` is known to be less than 0 at the current point of the walk."""


def assumptions_from(condition: SSAValue, holds: bool, r: KnownForms) -> Iterator[Form]:
    """Yields linear forms that are at most 0 if ``condition`` (an i1) is true (``holds``) or false.

    Follows ``and`` and ``or`` where each operand is decided. An unsigned comparison says something only if its larger
    side is known to be at least 0. Yields nothing for other conditions.
    """
    op: Any = condition.owner
    kind = type(op)
    if (kind is arith.AndIOp and holds) or (kind is arith.OrIOp and not holds):
        for operand in op.operands:
            yield from assumptions_from(operand, holds, r)
    if kind is not arith.CmpiOp:
        return
    left, right = op.operands
    if type(left.type) not in INTEGERS:
        return
    name = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    a, b = r.form(left), r.form(right)
    if not holds:
        name = _NEGATED[name]
    if name in ("ult", "ule", "ugt", "uge"):
        if name in ("ugt", "uge"):
            a, b, name = b, a, {"ugt": "ult", "uge": "ule"}[name]
        if not r.is_negative(b.scaled(-1).plus(constant(-1))):
            return
        yield a.scaled(-1)  # not negative, or it would be the largest of all
        name = "s" + name[1:]
    if name in ("sgt", "sge"):
        a, b, name = b, a, {"sgt": "slt", "sge": "sle"}[name]
    if name in ("slt", "sle", "eq"):
        yield a.plus(b, -1).plus(constant(int(name == "slt")))
    if name == "eq":
        yield b.plus(a, -1)
