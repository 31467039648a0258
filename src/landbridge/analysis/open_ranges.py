"""Ranges of the integers in lowered functions of open programs, whose extents are Sizes.

As ``index_ranges``, with factors and constants that are known only at run time: an index is a linear form over loop
counters and the like, with Sizes as factors. That a form is never above 0 is proved by replacing its youngest atom with
each of its bounds in turn, until only a Size is left (Fourier-Motzkin elimination). A sign that is not the same for all
inputs proves nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from math import inf
from typing import Any

from xdsl.dialects import arith, gpu, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import OpResult, SSAValue

from landbridge.analysis.assumed_sizes import may_be_empty, not_zero_where, readings
from landbridge.analysis.bound_rules import launched_count
from landbridge.analysis.conditions import assumptions_from
from landbridge.analysis.linear_forms import Bound, Form, Number, constant
from landbridge.ir.length_ops import SizedByOp
from landbridge.records import record
from landbridge.sizes.bounds import upper_bound
from landbridge.sizes.size import Extent, Size, always_at_least, at_least, largest, smallest, split_number
from landbridge.sizes.terms import Atom, Product, divide_product, of_atom

#: The most bounds without atoms that are derived for one form.
_CANDIDATES = 4
#: The most steps of a division of one sum by another.
_DIVISIONS = 4
_MINIMA = (arith.MinSIOp, arith.MinUIOp)
_MAXIMA = (arith.MaxSIOp, arith.MaxUIOp)
_QUOTIENTS = (arith.DivUIOp, arith.DivSIOp, arith.FloorDivSIOp)
_REMAINDERS = (arith.RemUIOp, arith.RemSIOp)
_LAUNCHED = (gpu.BlockIdOp, gpu.ThreadIdOp)
#: Operations without known bounds until the signs of their operands are known.
_SIGNED = frozenset((*_QUOTIENTS, *_REMAINDERS, arith.MinUIOp, arith.MaxUIOp))


@record
class _Atom:
    """A value that is no linear form of others; ``lower`` and ``upper`` bounds are over older atoms.

    ``least`` are the forms whose minimum it is. ``where_natural`` holds the operation and its operands if it has
    bounds, or more of them, only under conditions.
    """

    lower: list[Bound] = field(default_factory=list)
    upper: list[Bound] = field(default_factory=list)
    least: tuple[Form, ...] = ()
    where_natural: tuple[type, Form, Form] | None = None


class OpenRanges:
    """The facts about integers at the current point of a walk over a function. ``words`` is the operand that holds
    ``sizes``; the function does nothing if ``tasks`` is 0. It computes the Sizes ``computed`` from lengths."""

    def __init__(
        self,
        words: SSAValue | None,
        sizes: Sequence[Extent],
        tasks: Extent | None = None,
        computed: Sequence[Extent] = (),
    ) -> None:
        self._words, self._sizes = words, sizes
        self._may_be_empty = may_be_empty((*sizes, *computed))
        #: Atoms that may be 0 elsewhere, but not where there are tasks, or at this point.
        self._everywhere = self._known = not_zero_where(tasks) if self._may_be_empty else {}
        self._atoms: list[_Atom] = []
        self._forms: dict[SSAValue, Form] = {}
        self._assumed: list[tuple[int, bool, Bound]] = []
        self._assumed_sizes: list[Size] = []  # 0 or less here
        self._scope, self._scopes = 0, itertools.count(1)  # 0: nothing is assumed; no number is used twice
        self._proved: dict[tuple[Any, ...], bool] = {}
        self._assumed_facts: dict[tuple[int, int], _Atom] = {}
        #: Numbers of work-items have their bounds from tests alone.
        self._is_launched = False

    def define(self, value: SSAValue, lower: list[Form], upper: list[Form]) -> None:
        """Record that ``value`` lies between these forms of older values."""
        self._forms[value] = self._atom([(1, f) for f in lower], [(1, f) for f in upper])

    def count(self, value: SSAValue, low: Form, step: int, last: Form) -> None:
        """Record that ``value`` goes from ``low`` in steps of ``step``, not past ``last``: forms of older values."""
        span = last.plus(low, -1)
        most = (step, span) if span.terms else (1, constant(span.const // step))
        self._forms[value] = low.plus(self._atom([(1, constant(0))], [most]), step)

    def is_multiple(self, form: Form, divisor: int) -> bool:
        """Returns whether ``form`` is known to be a multiple of ``divisor``; of a minimum, whether both sides are."""
        if all(number % divisor == 0 for number in (form.const, *form.terms.values())):
            return True
        for atom, factor in form.terms.items():
            if sides := self._atoms[atom].least:
                rest = Form({a: c for a, c in form.terms.items() if a != atom}, form.const)
                return all(self.is_multiple(rest.plus(side, factor), divisor) for side in sides)
        return False

    def form(self, value: SSAValue) -> Form:
        """Returns ``value`` as a linear form."""
        if (found := self._forms.get(value)) is None:
            outer = self._assumed, self._assumed_sizes, self._known, self._scope
            # a form outlives the conditions under which it is first computed
            self._assumed, self._assumed_sizes, self._known, self._scope = [], [], self._everywhere, 0
            found = self._forms[value] = self._formed(value)
            self._assumed, self._assumed_sizes, self._known, self._scope = outer
        return found

    def is_at_most(self, form: Form, limit: Extent) -> bool:
        """Returns whether ``form`` is known to be at most ``limit`` here."""
        return self._is_never_positive(form.plus(constant(limit), -1))  # type: ignore[arg-type]

    def is_negative(self, form: Form) -> bool:
        """Returns whether ``form`` is known to be less than 0 here."""
        return self.is_at_most(form, -1)

    def lies_within(self, form: Form, low: Extent, high: Extent) -> bool:
        """Returns whether ``form`` is known to be ``low`` to ``high`` here."""
        return self.is_at_most(form, high) and self.is_at_most(form.scaled(-1), -low)

    def range_of(self, form: Form) -> tuple[Number, Number]:
        """Returns numbers that ``form`` is known to lie between here, for all sizes."""
        return -self._peak(form.scaled(-1)), self._peak(form)

    @contextmanager
    def where(self, condition: SSAValue, holds: bool = True) -> Iterator[bool]:
        """Assume in the ``with`` block that ``condition`` is ``holds``; yields whether that code may run at all."""
        known = list(assumptions_from(condition, holds, self))
        if any(self.is_negative(form.scaled(-1)) for form in known):
            yield False
            return
        outer = self._assumed, self._assumed_sizes, self._known, self._scope
        assumed = [bound for form in known if form.terms for bound in _bounds(form)]
        sizes: list[Any] = [form.const for form in known if not form.terms and isinstance(form.const, Size)]
        if assumed or sizes:
            self._assumed, self._assumed_sizes = self._assumed + assumed, self._assumed_sizes + sizes
            self._known = {**self._known, **self._narrowed(sizes)}
            self._scope = next(self._scopes)
        yield True
        self._assumed, self._assumed_sizes, self._known, self._scope = outer

    @contextmanager
    def entered(self, iterations: Form) -> Iterator[None]:
        """Assume in the ``with`` block that a loop of ``iterations`` has at least one."""
        known: dict[Atom, Extent] = {}
        for most in self._most(iterations) if self._may_be_empty else ():
            known |= not_zero_where(most)
        if known.keys() <= self._known.keys():
            yield
            return
        outer = self._known, self._scope
        self._known, self._scope = {**self._known, **known}, next(self._scopes)
        yield
        self._known, self._scope = outer

    def _narrowed(self, assumed: Sequence[Size]) -> dict[Atom, Extent]:
        """Returns the dimensions with higher low ends here, because the Sizes ``assumed`` are 0 or less."""
        found: dict[Atom, Extent] = {}
        for size in assumed:
            here = self._of_known(size)[0]
            if isinstance(here, Size) and len(here.terms) <= 2 and len(here.symbols) == 1:
                (symbol,) = here.symbols.values()
                number = here.at({symbol.name: 0})
                by = here.at({symbol.name: symbol.unit}) - number
                if by < 0 and here == Size(of_atom(symbol)) * by + number:
                    low = -(number // by)
                    if low > symbol.low and (symbol.high is None or low <= symbol.high):
                        found[size.symbols[symbol.name]] = Size(of_atom(replace(symbol, low=low)))
        return found

    # Forms ------------------------------------------------------------------------------------------------------

    def _atom(self, lower: list[Bound], upper: list[Bound], least: tuple[Form, ...] = ()) -> Form:
        self._atoms.append(_Atom(lower, upper, least))
        return Form({len(self._atoms) - 1: 1})

    def _formed(self, value: SSAValue) -> Form:
        op: Any = value.op if isinstance(value, OpResult) else None
        kind = type(op)
        if kind is arith.ConstantOp and isinstance(op.value, IntegerAttr):
            return constant(op.value.value.data)
        if kind is SizedByOp:
            return constant(op.size.data)
        if kind is memref.LoadOp and op.memref is self._words:
            at = self.form(op.indices[0])
            if not at.terms and 0 <= at.const < len(self._sizes):
                return constant(self._sizes[at.const])  # type: ignore[arg-type]
            return self._atom([], [])
        if kind is arith.IndexCastOp and self._is_whole(op.input):
            return self.form(op.input)
        if kind in _LAUNCHED and (count := launched_count(op)) is not None:
            self._is_launched = True
            return self._atom([(1, constant(0))], [(1, self.form(count).plus(constant(-1)))])
        if op is None or not op.operands or not self._is_whole(value):
            return self._atom([], [])
        forms = [self.form(operand) for operand in op.operands if self._is_whole(operand)]
        if len(forms) < 2:
            return self._atom([], [])
        a, b = forms[:2]
        if isinstance(value.type, IndexType):  # indices are assumed to be wide enough
            if kind is arith.AddiOp:
                return a.plus(b)
            if kind is arith.SubiOp:
                return a.plus(b, -1)
            if kind is arith.MuliOp and (not a.terms or not b.terms):
                return a.scaled(b.const) if not b.terms else b.scaled(a.const)
        atom = self._atom(*self._bounded(kind, a, b))
        if kind in _SIGNED and (self._is_launched or not self._atoms[-1].lower):
            self._atoms[-1].where_natural = kind, a, b
        return atom

    def _bounded(self, kind: type, a: Form, b: Form) -> tuple[list[Bound], list[Bound], tuple[Form, ...]]:
        """Returns bounds of ``a kind b`` by the signs known here, and the forms that it is the minimum of."""
        lower: list[Bound] = []
        upper: list[Bound] = []
        least: tuple[Form, ...] = ()
        if kind in _QUOTIENTS and not b.terms:
            self._quotient(a, b.const, lower, upper, rounds_down=kind is arith.FloorDivSIOp)
        elif kind in _REMAINDERS and not b.terms:
            self._remainder(a, b.const, lower, upper)
        elif kind in _MINIMA and self._signed(kind, a, b):
            upper += _simplest_first(a, b)
            lower += self._of_both(a, b, -1)
            least = a, b
        elif kind is arith.MinUIOp:  # it is at most any side that is not negative
            upper += [(1, side) for side in (a, b) if self._is_natural(side)]
            lower += [(1, constant(0))] * bool(upper)
        elif kind in _MAXIMA and self._signed(kind, a, b):
            lower += _simplest_first(a, b)
            upper += self._of_both(a, b, 1)
        return lower, upper, least

    def _here(self, atom: int) -> _Atom:
        """Returns ``atom``, with the bounds that follow where conditions give signs."""
        entry = self._atoms[atom]
        if entry.where_natural is None or not self._scope:
            return entry
        if (found := self._assumed_facts.get((atom, self._scope))) is None:
            self._assumed_facts[atom, self._scope] = entry  # the facts that signs follow from are older
            found = self._assumed_facts[atom, self._scope] = _Atom(*self._bounded(*entry.where_natural))
        return found

    def _is_whole(self, value: SSAValue) -> bool:
        """Returns whether ``value`` is an index, or an integer as wide made from a word of the Sizes or a constant."""
        return isinstance(value.type, IndexType) or getattr(getattr(value.type, "width", None), "data", 0) == 64

    def _signed(self, kind: type, a: Form, b: Form) -> bool:
        """Returns whether a minimum or maximum compares signed numbers."""
        return kind in (arith.MinSIOp, arith.MaxSIOp) or (self._is_natural(a) and self._is_natural(b))

    def _is_natural(self, form: Form) -> bool:
        return self.is_at_most(form.scaled(-1), 0)

    def _is_divisor(self, by: Extent) -> bool:
        if isinstance(by, int):
            return by >= 1
        return any(always_at_least(each, 1) for each in self._of_known(by))

    def _of_known(self, size: Extent) -> list[Extent]:
        """Returns one or two equal forms of ``size`` under the assumptions known here."""
        return list(readings(size, self._known)) if self._known and isinstance(size, Size) else [size]

    def _quotient(self, x: Form, by: Extent, lower: list[Bound], upper: list[Bound], *, rounds_down: bool) -> None:
        """Append bounds of ``x / by``, rounded towards 0, or down with ``rounds_down``."""
        natural = self._is_natural(x)
        if not self._is_divisor(by) or not (natural or rounds_down):
            return
        factor: Any = by
        lower += [(1, constant(0))] * natural
        lower.append((factor, x.plus(constant(1 - factor))))
        upper.append((factor, x))
        known: Any = next((each for each in self._of_known(by) if at_least(each, 1)), None)  # as it is, it may be 0
        if known is not None:
            mosts = [above for most in self._most(x) for each in self._of_known(most) for above in _at_least_as(each)]
            upper += [(1, constant(each // known)) for each in dict.fromkeys(mosts)]

    def _remainder(self, x: Form, by: Extent, lower: list[Bound], upper: list[Bound]) -> None:
        if not self._is_divisor(by) or not self._is_natural(x):
            return
        most: Any = by
        lower.append((1, constant(0)))
        upper += [(1, constant(most - 1)), (1, x)]

    def _of_both(self, a: Form, b: Form, sign: int) -> list[Bound]:
        """Returns bounds without atoms above (``sign`` 1) or below (-1) both forms."""
        of_a, of_b = self._most(a.scaled(sign)), self._most(b.scaled(sign))
        found: list[Any] = [largest(x, y) if sign > 0 else smallest(-x, -y) for x in of_a[:1] for y in of_b[:1]]
        return [(1, constant(each)) for each in found]

    # Proofs -----------------------------------------------------------------------------------------------------

    def _is_never_positive(self, form: Form) -> bool:
        if not form.terms:
            if isinstance(form.const, int):
                return form.const <= 0
            return any(always_at_least(0, size) or self._follows(size) for size in self._of_known(form.const))
        key = frozenset(form.terms.items()), form.const, self._scope
        if (known := self._proved.get(key)) is None:
            self._proved[key] = False  # until it is proved: nothing proves itself
            # A form with fewer atoms left, as some cancel, mostly leads to a proof; one with new atoms mostly does
            # not.
            simplest_first = sorted(self._replaced(form), key=lambda older: len(older.terms))
            known = self._proved[key] = any(map(self._is_never_positive, simplest_first)) or self._by_sides(form)
        return known

    def _follows(self, size: Extent) -> bool:
        """Returns whether ``size`` is 0 or less because it is at most a multiple of a Size that is assumed to be so."""
        if not isinstance(size, Size):
            return False
        return any(
            always_at_least(times, 0) and always_at_least(assumed * times, size)
            for assumed in itertools.chain.from_iterable(map(self._of_known, self._assumed_sizes))
            if isinstance(assumed, Size)
            for times in _multiples(size, assumed)
        )

    def _by_sides(self, form: Form) -> bool:
        """Returns whether ``form`` is at most 0 with either side of its youngest atom, which is a minimum."""
        atom = max(form.terms)
        sides = self._here(atom).least
        rest = Form({a: c for a, c in form.terms.items() if a != atom}, form.const)
        return bool(sides) and all(self._is_never_positive(rest.plus(side, form.terms[atom])) for side in sides)

    def _replaced(self, form: Form) -> Iterator[Form]:
        """Yields older forms, each at least ``form`` times a factor of at least 1."""
        atom = max(form.terms)
        factor: Any = form.terms[atom]
        above = _is_natural(factor)
        if above is None:
            return
        rest = Form({a: c for a, c in form.terms.items() if a != atom}, form.const)
        for times, bound in self._bounds_of(atom, above):
            if self._is_divisor(times):
                yield rest.scaled(times).plus(bound, factor)

    def _bounds_of(self, atom: int, above: bool) -> list[Bound]:
        """Returns the upper (``above``) or lower bounds of ``atom`` that are known here."""
        entry = self._here(atom)
        assumed = [bound for other, is_upper, bound in self._assumed if other == atom and is_upper == above]
        return [
            *assumed,
            *(entry.upper if above else entry.lower),
        ]  # a test is in the code because it implies what is needed

    def _peak(self, form: Form) -> Number:
        found = [upper_bound(each.terms) if isinstance(each, Size) else each for each in self._most(form)]
        return min((number for number in found if number is not None), default=inf)

    def _most(self, form: Form) -> list[Extent]:
        """Returns Sizes that are upper bounds of ``form`` here."""
        if not form.terms:
            return [form.const]
        found: list[Extent] = []
        atom = max(form.terms)
        factor: Any = form.terms[atom]
        above = _is_natural(factor)
        rest = Form({a: c for a, c in form.terms.items() if a != atom}, form.const)
        for times, bound in () if above is None else self._bounds_of(atom, above):
            if len(found) < _CANDIDATES and (share := _quotient_of(factor, times)) is not None:
                found += self._most(rest.plus(bound, share))
        return found[:_CANDIDATES]


def _is_natural(factor: Extent) -> bool | None:
    """Returns True if ``factor`` is never negative, False if it is never positive; None if neither is known."""
    return True if at_least(factor, 0) else False if at_least(0, factor) else None


def _quotient_of(factor: Extent, times: Extent) -> int | None:
    """Returns ``factor / times`` if that is a whole number for all sizes; else None."""
    if isinstance(factor, int) and isinstance(times, int):
        return factor // times if factor % times == 0 else None
    if times == 1:
        return factor  # type: ignore[return-value]
    return 1 if factor == times else -1 if factor == -times else None


def _at_least_as(most: Extent) -> list[Extent]:
    """Returns ``most``, and a bound of it whose quotients are simpler: ``8 * W - 17`` is at most ``8 * W - 1``."""
    rest, number = split_number(most)
    return [most, rest - 1] if number < -1 and isinstance(most, Size) else [most]


def _simplest_first(a: Form, b: Form) -> list[Bound]:
    """Returns both forms as bounds, a Size alone first: proofs follow the first bound that leads on."""
    return sorted([(1, a), (1, b)], key=lambda bound: len(bound[1].terms))


def _bounds(form: Form) -> Iterator[tuple[int, bool, Bound]]:
    """Yields ``form <= 0`` as a bound of an atom: the atom, whether the bound is an upper one, and the bound."""
    atom = max(form.terms)
    factor: Any = form.terms[atom]
    above = _is_natural(factor)
    rest = Form({a: c for a, c in form.terms.items() if a != atom}, form.const)
    if above is not None:
        yield atom, above, (factor if above else -factor, rest.scaled(-1 if above else 1))


def _multiples(size: Size, assumed: Size) -> set[Extent]:
    """Returns candidate factors of ``assumed`` in ``size``: numbers, products, and a quotient by its first term."""
    found = {t for term in size.terms for by in assumed.terms if always_at_least(t := _times_in(term, by), 0)}
    quotient: Extent = 0
    rest = size.terms
    for _ in range(_DIVISIONS):
        times = next((t for term in rest if (t := _times_in(term, assumed.terms[0])) != 0), 0)
        quotient = quotient + times
        left = size - assumed * quotient
        if times == 0 or isinstance(left, int):
            break
        rest = left.terms
    return {*found, quotient}


def _times_in(term: tuple[Product, int], by: tuple[Product, int]) -> Extent:
    """Returns how often the term ``by``, which is no number, divides ``term``; 0 if it does not."""
    rest = divide_product(term[0], by[0]) if by[0] else None
    if rest is None:
        return 0
    return Size(((rest, term[1] // by[1]),)) if rest and term[1] // by[1] else term[1] // by[1]
