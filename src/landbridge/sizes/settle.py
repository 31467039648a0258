"""Finds ranges of a dimension in which an undecided Question has an answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from math import lcm, log

from landbridge.records import record
from landbridge.sizes.question import Question
from landbridge.sizes.replaced import replaced
from landbridge.sizes.size import (
    LARGEST_EXTENT,
    Extent,
    Size,
    at_least,
    dimension,
    same,
)
from landbridge.sizes.terms import AboveZero, Clamped, Floor, Symbol, Terms, as_constant, atoms, scale, symbols

#: The most multiples of a dimension that are tried.
_MOST_UNITS = 1 << 10


@record(frozen=True)
class Settled:
    """A range that decides a question: it has ``answer`` where dimension ``name`` is ``extent``; ``wide`` is its
    width."""

    name: str
    extent: Extent
    answer: bool
    wide: float


def settled(question: Question, fixed: Collection[str]) -> list[Settled]:
    """Returns ranges of one dimension in which ``question`` has an answer, the widest first.

    Dimensions in ``fixed`` are left out. The width of a range is the ratio of its ends, divided by its factor.
    """
    found: list[Settled] = []
    for symbol in symbols(question.difference).values():
        if symbol.name in fixed:
            continue
        for wanted in (True,) if question.needed else (True, False):
            for low, high, units in dict.fromkeys(_ranges(question, symbol, wanted)):
                extent = _dimension(symbol, low, high, units)
                found.append(Settled(symbol.name, extent, wanted, _width(low, high) / units))
    return sorted(found, key=lambda each: (-each.wide, not each.answer))


def _ranges(question: Question, symbol: Symbol, wanted: bool) -> Iterator[tuple[int, int, int]]:
    """Yields ranges of ``symbol`` that decide the question: low and high end, in units, and a factor.

    Candidates reach to an end of the range, lie between both, or have all multiples of a factor.
    """
    low, high = symbol.low, _high(symbol)

    def holds(low: int, high: int, units: int = 1) -> bool:
        if high // units < -(-low // units):
            return False
        return answer(question, {symbol.name: _dimension(symbol, low, high, units)}) is wanted

    at_end, at_start = holds(high, high), holds(low, low)
    if at_end:
        yield _first(lambda end: holds(end, high), low, high), high, 1
    if at_start:
        yield low, -_first(lambda end: holds(low, -end), -high, -low), 1
    if question.equal and wanted and not at_end and not at_start:
        yield from _between(question, symbol)
    units = next((units for units in _multiples(question) if holds(low, high, units)), None)
    if units is not None:
        yield low, high, units


def _between(question: Question, symbol: Symbol) -> Iterator[tuple[int, int, int]]:
    """Yields the ranges where a difference is 0: its points at least 0 and at most 0."""
    for sign in (1, -1):
        above, below = (Question(scale(question.difference, by)) for by in (sign, -sign))
        for low, high, units in _ranges(above, symbol, True):
            part = _dimension(symbol, low, high, units)
            if not isinstance(part, Size):
                if answer(question, {symbol.name: part}):
                    yield low, high, 1
            elif units == 1:
                yield from _ranges(below, part.symbols[symbol.name], True)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Returns the least number from ``low`` to ``high`` that ``holds``, if all above it do."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def answer(question: Question, dimensions: Mapping[str, Extent]) -> bool | None:
    """Returns the answer if some dimensions are ``dimensions``, by name; None if these leave it open."""
    difference = replaced(question.difference, dimensions)
    return same(difference, 0) if question.equal else at_least(difference, 0)


def _multiples(question: Question) -> list[int]:
    """Returns factors of a dimension for which quotients have no remainder."""
    whole = lcm(*_divisors(question.difference))
    return [units for units in range(2, min(whole, _MOST_UNITS) + 1) if whole % units == 0]


def _divisors(terms: Terms) -> Iterator[int]:
    for atom in atoms(terms):
        if isinstance(atom, Floor):
            by = as_constant(atom.divisor)
            if by is not None:
                yield by
            yield from _divisors(atom.numerator)
            yield from _divisors(atom.divisor)
        elif isinstance(atom, AboveZero | Clamped):
            yield from _divisors(atom.terms)


def _dimension(symbol: Symbol, low: int, high: int, units: int) -> Extent:
    """Returns ``symbol`` with its units from ``low`` to ``high`` and multiples of ``units``."""
    unit = symbol.unit
    expected = symbol.expected
    is_legal = expected is not None and expected % units == 0 and low <= expected <= high
    expected = expected * unit if expected is not None and is_legal else None
    return dimension(symbol.name, low * unit, high * unit, unit * units, expected)


def _high(symbol: Symbol) -> int:
    return LARGEST_EXTENT // symbol.unit if symbol.high is None else symbol.high


def _width(low: int, high: int) -> float:
    """Returns the ratio of the ends; for ranges with negative numbers only those from 0 on count."""
    return log((high + 1) / max(low, 1)) if high >= 0 else -1.0
