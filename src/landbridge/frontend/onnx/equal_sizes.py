"""Infers from equalities of extents which dimensions are equal, and collects the equalities that one walk of a model
finds.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from dataclasses import field
from math import lcm

from landbridge.errors import UndecidedSizeError
from landbridge.ir.graph_builder import Broadcasting
from landbridge.records import record
from landbridge.sizes.division import positive_factor, without_factor
from landbridge.sizes.question import Question
from landbridge.sizes.replaced import replaced, with_atoms
from landbridge.sizes.settle import settled
from landbridge.sizes.size import Extent, Size, always_at_least, dimension, extent_of, of_symbol
from landbridge.sizes.terms import (
    ZERO,
    Symbol,
    Terms,
    add,
    divide_exactly,
    of_atom,
    scale,
    symbols,
)


def question_of(error: BaseException | None) -> Question | None:
    """Returns the comparison that ``error``, or an error that it was raised from, could not decide."""
    while error is not None:
        if isinstance(error, UndecidedSizeError) and isinstance(error.question, Question):
            return error.question
        error = error.__cause__
    return None


def resolved(dimensions: Mapping[str, Extent]) -> dict[str, Extent]:
    """Returns ``dimensions`` in terms of those that do not depend on others: if ``t`` is ``p + s`` and ``p`` has a
    range, ``t`` is an expression of that range.
    """
    known: dict[str, Extent] = {}

    def of(name: str) -> Extent:
        if name not in known:
            extent = dimensions[name]
            others = extent.symbols.keys() & dimensions.keys() - {name} if isinstance(extent, Size) else ()
            known[name] = replaced(extent.terms, {n: of(n) for n in others}) if isinstance(extent, Size) else extent
        return known[name]

    return {name: of(name) for name in dimensions}


def solved(
    question: Question, fixed: Collection[str], decided: Container[str] = frozenset()
) -> dict[str, Extent] | None:
    """Returns the dimensions, by name, for which both sides of ``question`` are equal; None if nothing follows.

    One of two dimensions becomes the other, with the intersection of their ranges. A dimension that is a sum of others
    becomes that sum, as the length of a mask does, which is that of past and present keys; but not if data ``decided``
    it. Dimensions in ``fixed`` have declared ranges: they are only replaced by others with declared ranges, if the
    model requires it.
    """
    if not question.equal:
        return None
    terms = question.difference
    factor = positive_factor(terms)
    if factor:
        terms = without_factor(terms, factor)
    found = symbols(terms)
    if len(found) < 2:
        return None
    for name in sorted(found, key=lambda each: (each not in fixed, each), reverse=True):
        other = _equal_to(terms, found[name])
        if other is not None:
            if name in fixed and not question.needed:
                continue
            both = _both(found[name], other)
            if both is None:
                return None
            same = of_symbol(other)
            return {name: same} if both == same else {name: same, other.name: both}
        value = _value(terms, found[name])
        if value is None:
            continue
        if name not in fixed and name not in decided and always_at_least(value, found[name].low * found[name].unit):
            return {name: value}
    return None


def _equal_to(terms: Terms, symbol: Symbol) -> Symbol | None:
    """Returns the dimension that ``symbol`` must be equal to if ``terms`` are 0; None if nothing follows."""
    others = [each for name, each in symbols(terms).items() if name != symbol.name]
    if len(terms) != 2 or len(others) != 1:
        return None
    values = dict(terms)
    one, two = (values.get(((each, 1),), 0) for each in (symbol, others[0]))
    return others[0] if one and one * others[0].unit == -two * symbol.unit else None


def _value(terms: Terms, symbol: Symbol) -> Size | None:
    """Returns the expression that ``symbol`` must be equal to if ``terms`` are 0; None if nothing follows."""
    containing = [(product, number) for product, number in terms if symbol in dict(product)]
    if len(containing) != 1 or containing[0][0] != ((symbol, 1),):
        return None
    rest = tuple(each for each in terms if each not in containing)
    if symbol.name in symbols(rest):
        return None
    number = containing[0][1]
    units = divide_exactly(scale(rest, -1 if number > 0 else 1), abs(number))
    value = None if units is None else Size(units) * symbol.unit
    return value if isinstance(value, Size) else None


def _both(one: Symbol, other: Symbol) -> Extent | None:
    """Returns dimension ``other`` with the intersection of both ranges; None if it is empty."""
    highs = [each.high * each.unit for each in (one, other) if each.high is not None]
    units = lcm(one.unit, other.unit)
    low, high = max(one.low * one.unit, other.low * other.unit), min(highs, default=None)
    expected = [each.expected * each.unit for each in (other, one) if each.expected is not None]
    legal = [n for n in expected if n % units == 0 and low <= n and (high is None or n <= high)]
    try:
        return dimension(other.name, low, high, units, legal[0] if legal else None)
    except ValueError:
        return None


@record
class EqualSizes:
    """Dimensions that a walk of a model has expressed by others, because the model requires equal extents.

    ``found`` has them by name, each in terms of dimensions that stay. A walk that finds some continues to find all, and
    its module is dropped; the next walk begins with them. ``fixed`` and ``decided``: see ``solved``. ``broadcasts``:
    one of the equalities is only required of extents over 1. ``has_more``: the next walk has something new to begin
    with. ``requested``: the error of the latest equality. ``broadcasting`` is that of the program being built; it
    learns which of two extents is the larger one.
    """

    fixed: Collection[str] = ()
    decided: Container[str] = frozenset()
    found: dict[str, Extent] = field(default_factory=dict)
    broadcasts: bool = False
    broadcasting: Broadcasting = field(default_factory=Broadcasting)
    has_more: bool = False
    requested: UndecidedSizeError | None = None

    def begin(self, fixed: Collection[str], decided: Container[str]) -> None:
        """Begin another walk: forget what the previous one found."""
        self.fixed, self.decided, self.found, self.broadcasts = fixed, decided, {}, False
        self.has_more, self.requested = False, None

    def add(self, error: UndecidedSizeError) -> bool:
        """Record the equality that ``error`` requires; returns whether it determines a dimension."""
        question = question_of(error)
        if question is None or not question.equal or len(symbols(question.difference)) < 2:
            return False
        if self._is_one_of_two(question):
            self.has_more = True
            return True
        if settled(question, self.fixed):
            return False
        more = solved(question, self.fixed, self.decided)
        if not more or not more.keys() - self.found.keys():
            return False
        self.found = resolved({**self.found, **more})
        self.broadcasts |= question.broadcasts
        self.has_more, self.requested = True, error
        return True

    def _is_one_of_two(self, question: Question) -> bool:
        """Returns whether ``question`` requires that the larger of two extents that broadcast is a particular one of
        them.
        """
        for atom in self.broadcasting.created - self.broadcasting.known.keys():
            terms = of_atom(atom)
            for value in (ZERO, atom.terms):
                left = add(terms, scale(value, -1))
                number = next(n for product, n in left if product == ((atom, 1),))
                factor = next((n for product, n in question.difference if product == ((atom, 1),)), 0)
                if factor and scale(left, factor) == scale(question.difference, number):
                    self.broadcasting.known[atom] = extent_of(value)
                    return True
        return False

    def extent(self, extent: Extent) -> Extent:
        """Returns ``extent`` in terms of dimensions that stay."""
        if not isinstance(extent, Size):
            return extent
        if self.broadcasting.known:
            extent = with_atoms(extent.terms, self.broadcasting.known)
        if not isinstance(extent, Size) or self.found.keys().isdisjoint(extent.symbols):
            return extent
        return replaced(extent.terms, self.found)
