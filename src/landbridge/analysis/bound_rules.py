"""Rules for index ranges: bounds of a value that follow from the operation that defines it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from math import inf
from typing import Any, Protocol, TypeAlias

from xdsl.dialects import arith, gpu, scf
from xdsl.ir import SSAValue

from landbridge.analysis.linear_forms import Bound, Form, Number, constant

#: Lower and upper bounds of a value, in pairs; None for one that is not known.
Pairs: TypeAlias = Iterator[tuple[Bound | None, Bound | None]]


class KnownRanges(Protocol):
    """The queries about operands that a rule may make."""

    def form(self, value: SSAValue) -> Form:
        """Returns ``value``, an integer, as a linear form over atoms."""

    def range_of(self, form: Form) -> tuple[Number, Number]:
        """Returns the smallest and largest value of ``form`` here; infinite where nothing is known."""

    def smallest(self, form: Form) -> Number:
        """Returns the smallest value of ``form`` here."""

    def largest(self, form: Form) -> Number:
        """Returns the largest value of ``form`` here."""

    def rough_range(self, form: Form) -> tuple[Number, Number]:
        """Returns a range that contains ``range_of(form)``, may be wider, and takes less time to compute."""

    def is_negative(self, form: Form) -> bool:
        """Returns whether ``largest(form)`` is less than 0."""

    def where(self, condition: SSAValue, holds: bool) -> AbstractContextManager[bool]:
        """Assume in the ``with`` block that ``condition`` is true (``holds``) or false; yields False if that is
        impossible, so that the code never runs.
        """


def _number(x: Number) -> Bound | None:
    return None if x in (inf, -inf) else (1, constant(int(x)))


def _is_natural(r: KnownRanges, x: Form) -> bool:
    """Returns whether ``x`` is known to be at least 0."""
    return r.is_negative(Form({a: -c for a, c in x.terms.items()}, -x.const - 1))


def _sum(r: KnownRanges, op: Any) -> Pairs:
    a, b = map(r.form, op.operands)
    exact = a.plus(b, -1 if isinstance(op, arith.SubiOp) else 1)
    yield (1, exact), (1, exact)


def _product(r: KnownRanges, op: Any) -> Pairs:
    a, b = map(r.form, op.operands)
    for x, y in ((a, b), (b, a)):
        if not y.terms:
            yield (1, x.scaled(y.const)), (1, x.scaled(y.const))
            return
    ends = [x * y for x in r.range_of(a) for y in r.range_of(b)]
    if all(-inf < e < inf for e in ends):
        yield _number(min(ends)), _number(max(ends))


def _quotient(r: KnownRanges, op: Any) -> Pairs:
    x, y = map(r.form, op.operands)
    if y.terms or y.const <= 0:
        return
    n = y.const
    if isinstance(op, arith.FloorDivSIOp) or _is_natural(r, x):
        low, high = r.range_of(x)
        if -inf < low and high < inf and low // n == high // n:
            yield _number(low // n), _number(low // n)
            return
        yield (n, x.plus(constant(1 - n))), (n, x)
        yield _number(low // n if low > -inf else low), _number(high // n if high < inf else high)
    elif isinstance(op, arith.DivSIOp):
        low, high = r.range_of(x)
        if low > -inf and high < inf:
            yield _number(-(-low // n)), _number(max(high // n, 0))


def _remainder(r: KnownRanges, op: Any) -> Pairs:
    x, y = map(r.form, op.operands)
    if y.terms or y.const <= 0:
        return
    natural = _is_natural(r, x)
    if natural and r.is_negative(x.plus(y, -1)):
        yield (1, x), (1, x)
        return
    yield _number(1 - y.const if isinstance(op, arith.RemSIOp) and not natural else 0), _number(y.const - 1)
    if natural:
        yield None, (1, x)


def _minimum(r: KnownRanges, op: Any) -> Pairs:
    a, b = map(r.form, op.operands)
    low = min(r.smallest(a), r.smallest(b))
    if isinstance(op, arith.MinSIOp) or low >= 0:
        yield _number(low), (1, a)
        yield None, (1, b)
        return
    for side in (a, b):  # without a sign it is at most any side that is not negative
        if _is_natural(r, side):
            yield _number(0), (1, side)


def _maximum(r: KnownRanges, op: Any) -> Pairs:
    a, b = map(r.form, op.operands)
    if isinstance(op, arith.MaxSIOp) or min(r.smallest(a), r.smallest(b)) >= 0:
        high = _number(max(r.largest(a), r.largest(b)))
        yield (1, a), high
        yield (1, b), None


def _selected(r: KnownRanges, op: Any) -> Pairs:
    yield _either(r, *op.operands)


def _either(r: KnownRanges, condition: SSAValue, then: SSAValue, orelse: SSAValue) -> tuple[Bound | None, Bound | None]:
    """Returns bounds that hold for ``then`` if ``condition`` is true and for ``orelse`` if it is false."""
    ends = []
    for value, holds in ((then, True), (orelse, False)):
        with r.where(condition, holds) as reached:
            if reached:
                ends.append(r.range_of(r.form(value)))
    return _number(min((e[0] for e in ends), default=0)), _number(max((e[1] for e in ends), default=0))


def _same(r: KnownRanges, op: Any) -> Pairs:
    """Yields the bounds of a cast: those of its operand, unless that may be negative and is extended with zeros."""
    x, width = r.form(op.operands[0]), getattr(op.operands[0].type, "width", None)
    if isinstance(op, arith.ExtUIOp) and width is not None and r.smallest(x) < 0:
        yield (1, constant(0)), (1, constant((1 << width.data) - 1))
    else:
        yield (1, x), (1, x)


def _bits(r: KnownRanges, op: Any) -> Pairs:
    """Yields the bounds of ``x & y``: from 0 to each operand that is not negative."""
    for x in map(r.form, op.operands):
        if r.smallest(x) >= 0:
            yield (1, constant(0)), (1, x)


def launched_count(op: Any) -> SSAValue | None:
    """Returns the number of workgroups, or of work-items in one, of which ``op`` is the index; None outside of
    launches.
    """
    launch = op.parent_op()
    while launch is not None and not isinstance(launch, gpu.LaunchOp):
        launch = launch.parent_op()
    if launch is None:
        return None
    axis = op.dimension.data.value.upper()
    count: SSAValue = getattr(launch, ("gridSize" if isinstance(op, gpu.BlockIdOp) else "blockSize") + axis)
    return count


def _launched(r: KnownRanges, op: Any) -> Pairs:
    """Yields the bounds of the index of a workgroup, or of a work-item in its workgroup: from 0 to below
    their number.
    """
    count = launched_count(op)
    if count is not None:
        yield (1, constant(0)), (1, r.form(count).plus(constant(-1)))


def _chosen(r: KnownRanges, op: Any) -> Pairs:
    """Yields the bounds of the result of an ``scf.if`` with one result."""
    if len(op.results) == 1:
        yield _either(r, op.cond, *(region.block.last_op.operands[0] for region in (op.true_region, op.false_region)))


#: The rule for the result of each kind of operation.
BOUND_RULES: dict[type, Callable[[KnownRanges, Any], Pairs]] = {
    arith.AddiOp: _sum,
    arith.SubiOp: _sum,
    arith.MuliOp: _product,
    arith.DivUIOp: _quotient,
    arith.DivSIOp: _quotient,
    arith.FloorDivSIOp: _quotient,
    arith.RemUIOp: _remainder,
    arith.RemSIOp: _remainder,
    arith.MinSIOp: _minimum,
    arith.MinUIOp: _minimum,
    arith.MaxSIOp: _maximum,
    arith.MaxUIOp: _maximum,
    arith.SelectOp: _selected,
    arith.IndexCastOp: _same,
    arith.ExtSIOp: _same,
    arith.ExtUIOp: _same,
    arith.TruncIOp: _same,
    arith.AndIOp: _bits,
    gpu.BlockIdOp: _launched,
    gpu.ThreadIdOp: _launched,
    scf.IfOp: _chosen,
}
