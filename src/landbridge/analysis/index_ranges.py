"""Ranges of the integers in lowered functions: the largest and smallest value of an index where it is used.

An index is a linear form over atoms: loop counters, work-item indices, and results of division, minimum, maximum or
loads. Each atom has linear bounds over atoms defined before it, known from its operation and from the conditions
around. A form's largest value follows by replacing the youngest atom with each of its bounds in turn, until only a
number is left (Fourier-Motzkin elimination, in the order of definition): the smallest of these numbers holds. Factors
are integers: a bound of ``n`` times an atom replaces it in ``n`` times the form, whose largest value is divided by
``n`` and rounded down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from functools import reduce
from math import gcd, inf
from operator import or_
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import OpResult, SSAValue

from landbridge.analysis.bound_rules import BOUND_RULES
from landbridge.analysis.conditions import INTEGERS, assumptions_from
from landbridge.analysis.linear_forms import Bound, Form, Number, Terms, constant
from landbridge.analysis.scoped_results import ScopedResults
from landbridge.records import record


@record
class _Atom:
    """A value that is not a linear form of others.

    Its bounds are ``lower`` and ``upper``, known from the start, and those that follow from the operation that defines
    ``value``, if not None.
    """

    value: SSAValue | None
    lower: list[Bound] = field(default_factory=list)
    upper: list[Bound] = field(default_factory=list)


class IndexRanges:
    """The facts about integers at the current point of a walk over a function."""

    def __init__(self) -> None:
        self._atoms: list[_Atom] = []
        self._forms: dict[SSAValue, Form] = {}
        self._assumed: list[tuple[int, bool, Bound]] = []
        self._results = ScopedResults()
        self._created: dict[tuple[Any, ...], Form] = {}

    def define(self, value: SSAValue, lower: list[Form], upper: list[Form]) -> None:
        """Record that ``value`` is at least each of the forms ``lower`` and at most each of ``upper``, all of older
        values.
        """
        self._atoms.append(_Atom(None, [(1, f) for f in lower], [(1, f) for f in upper]))
        self._forms[value] = Form({len(self._atoms) - 1: 1})

    def count(self, value: SSAValue, low: Form, step: int, last: Form) -> None:
        """Record that ``value`` is ``low`` plus a multiple of ``step``, from ``low`` to ``last``: forms of older
        values.
        """
        span = last.plus(low, -1)
        most = (step, span) if span.terms else (1, constant(span.const // step))
        self._atoms.append(_Atom(None, [(1, constant(0))], [most]))
        self._forms[value] = low.plus(Form({len(self._atoms) - 1: 1}), step)

    def is_multiple(self, form: Form, divisor: int) -> bool:
        """Returns whether ``form`` is known to be a multiple of ``divisor``.

        Where a term is a minimum, both of its operands must make the form a multiple.
        """
        if all(c % divisor == 0 for c in form.terms.values()):
            return bool(form.const % divisor == 0)
        for atom, factor in form.terms.items():
            value = self._atoms[atom].value
            op: Any = value.owner if value is not None else None
            if isinstance(op, arith.MinSIOp | arith.MinUIOp):
                rest = Form({a: c for a, c in form.terms.items() if a != atom}, form.const)
                return all(self.is_multiple(rest.plus(self.form(side), factor), divisor) for side in op.operands)
        return False

    def form(self, value: SSAValue) -> Form:
        """Returns ``value``, an integer, as a linear form over atoms; the same form each time.

        A value that is no sum or multiple of others becomes an atom.
        """
        if (found := self._forms.get(value)) is None:
            found = self._forms[value] = self._formed(value)
        return found

    def range_of(self, form: Form) -> tuple[Number, Number]:
        """Returns the smallest and largest value that ``form`` may take here; infinite where nothing is known."""
        return self.smallest(form), self.largest(form)

    def smallest(self, form: Form) -> Number:
        """Returns the smallest value that ``form`` may take here."""
        return -self.largest(form.scaled(-1))

    def largest(self, form: Form) -> Number:
        """Returns the largest value that ``form`` may take here."""
        terms, plus = form.terms, form.const
        if not terms:
            return plus
        shared = gcd(*terms.values())
        if shared > 1:
            terms = {a: c // shared for a, c in terms.items()}
        # Until it is computed: an atom that bounds itself has no bound.
        found: Number = self._results.get(frozenset(terms.items()), self._eliminate, terms, inf)
        return found * shared + plus

    def _eliminate(self, terms: Terms) -> Number:
        best: Number = inf
        for scale, replaced in self._without_youngest(terms):
            most = self.largest(replaced)
            best = min(best, most if scale == 1 else _quotient(most, scale))
        return best

    def _without_youngest(self, terms: Terms) -> Iterator[tuple[int, Form]]:
        """Yields pairs ``(n, form)`` such that ``n`` times ``terms`` is at most ``form``, which lacks the youngest
        atom.
        """
        atom = max(terms)
        factor = terms[atom]
        for times, bound in self._bounds_of(atom)[factor > 0]:
            shared = gcd(times, factor)
            scale, by = times // shared, factor // shared
            replaced = {a: c * scale for a, c in terms.items() if a != atom}
            for a, c in bound.terms.items():
                if total := replaced.get(a, 0) + c * by:
                    replaced[a] = total
                else:
                    del replaced[a]
            yield scale, Form(replaced, bound.const * by)

    def lies_within(self, form: Form, low: int, high: int) -> bool:
        """Returns whether ``form`` is known to be at least ``low`` and at most ``high`` at the current point."""
        least, most = self.rough_range(form)
        return (most <= high or self._is_at_most(form, high)) and (
            low <= least or self._is_at_most(form.scaled(-1), -low)
        )

    def is_at_most(self, form: Form, limit: int) -> bool:
        """Returns whether ``form`` is known to be at most ``limit`` here."""
        return self.largest(form) <= limit

    def is_negative(self, form: Form) -> bool:
        """Returns whether ``form`` is known to be less than 0 here."""
        return self.rough_range(form)[1] < 0 or self.largest(form) < 0

    def rough_range(self, form: Form) -> tuple[Number, Number]:
        """Returns a range that contains ``range_of(form)`` and takes less time to compute.

        It adds up the range of each term, and ignores what one atom implies for others.
        """
        plus, terms = form.const, form.terms
        if not terms:
            return plus, plus
        # Keyed by the terms in order: unrolled accesses share them.
        ends = self._results.get(tuple(terms.items()), self._rough_range_of_terms, terms, (-inf, inf))
        return ends[0] + plus, ends[1] + plus

    def _rough_range_of_terms(self, terms: Terms) -> tuple[Number, Number]:
        least: Number = 0
        most: Number = 0
        for atom, factor in terms.items():
            ends = self._results.get(~atom, self._rough_range_of_atom, atom, (-inf, inf))
            least += factor * ends[factor < 0]
            most += factor * ends[factor > 0]
        return least, most

    def _rough_range_of_atom(self, atom: int) -> tuple[Number, Number]:
        least, most = -inf, inf
        lower, upper = self._bounds_of(atom)
        for times, bound in lower:
            least = max(least, -_quotient(-self.rough_range(bound)[0], times))
        for times, bound in upper:
            most = min(most, _quotient(self.rough_range(bound)[1], times))
        return least, most

    def _is_at_most(self, form: Form, limit: int) -> bool:
        """Returns whether ``largest(form)`` is at most ``limit``. Stops at the first bounds that prove it."""
        if not form.terms or self.rough_range(form)[1] <= limit:
            return form.const <= limit or bool(form.terms)
        shared = gcd(*form.terms.values())
        terms = {a: c // shared for a, c in form.terms.items()} if shared > 1 else form.terms
        key = terms, (limit - form.const) // shared
        found: bool = self._results.get((frozenset(terms.items()), key[1]), self._is_bounded, key, False)
        return found

    def _is_bounded(self, terms_and_limit: tuple[Terms, int]) -> bool:
        terms, limit = terms_and_limit
        simplest_first = sorted(self._without_youngest(terms), key=lambda replaced: len(replaced[1].terms))
        return any(self._is_at_most(older, limit * scale + scale - 1) for scale, older in simplest_first)

    def entered(self, iterations: Form) -> AbstractContextManager[None]:
        """Returns a context for the body of a loop with that many ``iterations``; this class assumes nothing more in
        it.
        """
        return nullcontext()

    @contextmanager
    def where(self, condition: SSAValue, holds: bool = True) -> Iterator[bool]:
        """Assume in the ``with`` block that ``condition`` is true (``holds``) or false; yields False if that is
        impossible, so that the code never runs.
        """
        known = list(assumptions_from(condition, holds, self))
        if any(self.smallest(form) > 0 for form in known):
            yield False
            return
        before = len(self._assumed)
        self._assumed += [_bound(form) for form in known if form.terms]
        with self._results.assumptions_about(reduce(or_, (1 << atom for atom, _, _ in self._assumed[before:]), 0)):
            yield True
        del self._assumed[before:]

    def _formed(self, value: SSAValue) -> Form:
        if not isinstance(value, OpResult):
            return self._atom(value)
        op: Any = value.op
        kind = type(op)
        if kind is arith.ConstantOp and isinstance(op.value, IntegerAttr):
            return constant(op.value.value.data)
        operands = [self.form(v) for v in op.operands if type(v.type) in INTEGERS]  # operands are older than the result
        if kind in _LINEAR and type(value.type) is IndexType:
            a, b = operands[0], operands[-1]
            if kind is not arith.MuliOp:
                return a if kind is arith.IndexCastOp else a.plus(b, -1 if kind is arith.SubiOp else 1)
            if not a.terms or not b.terms:
                return a.scaled(b.const) if not b.terms else b.scaled(a.const)
        if kind not in _BY_OPERANDS or type(value.type) not in INTEGERS:
            return self._atom(value)
        key = kind, value.type, *((form.const, *form.terms.items()) for form in operands)
        if (known := self._created.get(key)) is None:
            known = self._created[key] = self._atom(value)
        return known

    def _atom(self, value: SSAValue) -> Form:
        self._atoms.append(_Atom(value))
        return Form({len(self._atoms) - 1: 1})

    def _bounds_of(self, atom: int) -> tuple[list[Bound], list[Bound]]:
        """Returns the lower and upper bounds of an atom here."""
        found: tuple[list[Bound], list[Bound]] = self._results.get(atom, self._found_bounds, atom, ([], []))
        return found

    def _found_bounds(self, atom: int) -> tuple[list[Bound], list[Bound]]:
        self._results.ask(atom)
        entry = self._atoms[atom]
        lower, upper = list(entry.lower), list(entry.upper)
        for other, is_upper, bound in self._assumed:
            if other == atom:
                (upper if is_upper else lower).append(bound)
        if entry.value is not None:
            for low, high in self._operation(entry.value):
                lower += [low] if low is not None else []
                upper += [high] if high is not None else []
        return lower, upper

    def _operation(self, value: SSAValue) -> Iterator[tuple[Bound | None, Bound | None]]:
        """Yields pairs of a lower and an upper bound that follow from the operation that defines ``value``."""
        ty, op = value.type, value.owner if isinstance(value, OpResult) else None
        rule = BOUND_RULES.get(type(op)) if op is not None else None
        pairs = list(rule(self, op)) if rule is not None else []
        if isinstance(ty, IntegerType):
            limits = _limits(ty.width.data)
            yield (1, constant(limits[0])), (1, constant(limits[1]))
            if isinstance(op, _WRAPPING) and not any(self._within(pair, limits) for pair in pairs):
                return
        yield from pairs

    def _within(self, pair: tuple[Bound | None, Bound | None], limits: tuple[int, int]) -> bool:
        """Returns whether a pair of bounds proves that a value lies within ``limits``, so that its type has not wrapped
        it.
        """
        low, high = pair
        if low is None or high is None:
            return False
        return self.smallest(low[1]) >= limits[0] * low[0] and self.largest(high[1]) <= limits[1] * high[0]


def _quotient(x: Number, by: int) -> Number:
    return x if x in (inf, -inf) else x // by


def _bound(form: Form) -> tuple[int, bool, Bound]:
    """Returns what ``form <= 0`` says of its youngest atom: the atom, whether the bound is an upper one,
    and the bound.
    """
    atom = max(form.terms)
    factor = form.terms[atom]
    rest = Form({a: c for a, c in form.terms.items() if a != atom}, form.const)
    return atom, factor > 0, (abs(factor), rest.scaled(-1 if factor > 0 else 1))


def _limits(width: int) -> tuple[int, int]:
    return (-1, 1) if width == 1 else (-(1 << (width - 1)), (1 << (width - 1)) - 1)


#: Operations on indices that need no new atom, if one factor of a product is a number.
_LINEAR = frozenset((arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.IndexCastOp))
#: Pure operations: equal operands give equal results.
_BY_OPERANDS = frozenset(
    (
        *(arith.DivUIOp, arith.DivSIOp, arith.FloorDivSIOp, arith.RemUIOp, arith.RemSIOp, arith.MuliOp),
        *(arith.MinSIOp, arith.MinUIOp, arith.MaxSIOp, arith.MaxUIOp),
    )
)
#: Operations whose result wraps to its type. Indices are assumed to be wide enough.
_WRAPPING = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.TruncIOp, arith.IndexCastOp)
