"""Infers from equalities of extents which dimensions are equal."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from math import lcm

from landbridge.errors import UndecidedSizeError
from landbridge.sizes.division import positive_factor, without_factor
from landbridge.sizes.question import Question
from landbridge.sizes.replaced import replaced
from landbridge.sizes.size import Extent, Size, always_at_least, dimension, of_symbol
from landbridge.sizes.terms import (
    Symbol,
    Terms,
    divide_exactly,
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
