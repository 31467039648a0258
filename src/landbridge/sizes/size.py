"""Size: an integer that is known only at run time, with the operators of int.

Results that are the same number for all inputs are ints, so code that computes with Sizes is code that computes with
ints. A comparison that the bounds of the dimensions do not decide raises UndecidedSizeError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import isqrt
from typing import TypeAlias

from landbridge.errors import UndecidedSizeError
from landbridge.sizes import bounds, division
from landbridge.sizes.printing import range_text, text_of
from landbridge.sizes.question import Question
from landbridge.sizes.samples import samples
from landbridge.sizes.terms import (
    KNOWN,
    AboveZero,
    Atom,
    Clamped,
    Symbol,
    Terms,
    add,
    as_constant,
    atoms,
    common_factor,
    constant,
    divide_exactly,
    evaluate,
    multiply,
    of_atom,
    plus_constant,
    scale,
    split_constant,
    symbols,
)

#: The limit of an extent, and of the number of elements of a tensor.
_LARGEST = 1 << 62


class Size:
    """An integer expression over dimensions, never a constant; equal if the terms are. Arithmetic creates Sizes."""

    __slots__ = ("_hash", "terms")

    terms: Terms
    _hash: int

    def __init__(self, terms: Terms) -> None:
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "_hash", hash(terms))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Size does not change: {name}")

    def __reduce__(self) -> tuple[type[Size], tuple[Terms]]:
        return Size, (self.terms,)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Returns whether the terms are the same; a Size never equals an int, as constants are ints."""
        return isinstance(other, Size) and self.terms == other.terms

    def __str__(self) -> str:
        return text_of(self.terms)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        """Format the Size; ``d`` puts it into brackets, as a dimension in the types of the IR is written."""
        return f"[{self}]" if spec == "d" else format(str(self), spec)

    @property
    def symbols(self) -> dict[str, Symbol]:
        """Returns the dimensions that it depends on, by name."""
        return symbols(self.terms)

    @property
    def low(self) -> int | None:
        """Returns a number that it never falls below; None if none is known."""
        return bounds.lower_bound(self.terms)

    @property
    def high(self) -> int | None:
        """Returns a number that it never exceeds; None if none is known."""
        return bounds.upper_bound(self.terms)

    def at(self, values: Mapping[str, int]) -> int:
        """Returns the value where the dimensions have ``values``, by name."""
        return evaluate(self.terms, lambda symbol: values[symbol.name])

    def __add__(self, other: Extent) -> Extent:
        if isinstance(other, int):
            return extent_of(plus_constant(self.terms, other)) if other else self
        return extent_of(add(self.terms, other.terms)) if isinstance(other, Size) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Extent:
        return extent_of(scale(self.terms, -1))

    def __pos__(self) -> Extent:
        return self

    def __sub__(self, other: Extent) -> Extent:
        return extent_of(add(self.terms, scale(_terms(other), -1))) if isinstance(other, int | Size) else NotImplemented

    def __rsub__(self, other: int) -> Extent:
        return -self + other if isinstance(other, int) else NotImplemented

    def __mul__(self, other: Extent) -> Extent:
        if isinstance(other, int):
            return self if other == 1 else extent_of(scale(self.terms, other))
        return extent_of(multiply(self.terms, other.terms)) if isinstance(other, Size) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Extent) -> Extent:
        return _floor(self, other) if isinstance(other, int | Size) else NotImplemented

    def __rfloordiv__(self, other: int) -> Extent:
        return _floor(other, self) if isinstance(other, int) else NotImplemented

    def __mod__(self, other: Extent) -> Extent:
        return self - other * (self // other) if isinstance(other, int | Size) else NotImplemented

    def __rmod__(self, other: int) -> Extent:
        return other - self * (other // self) if isinstance(other, int) else NotImplemented

    def __divmod__(self, other: Extent) -> tuple[Extent, Extent]:
        return self // other, self % other

    def __bool__(self) -> bool:
        return not _decided(same(self, 0), (self, "!=", 0), self, 0, equal=True)

    def __lt__(self, other: Extent) -> bool:
        return not self >= other

    def __gt__(self, other: Extent) -> bool:
        return not self <= other

    def __le__(self, other: Extent) -> bool:
        return _decided(at_least(other, self), (self, "<=", other), other, self)

    def __ge__(self, other: Extent) -> bool:
        return _decided(at_least(self, other), (self, ">=", other), self, other)

    def __index__(self) -> int:
        raise UndecidedSizeError(f"{self} is not one number{_depends(self)}")

    __int__ = __index__


#: An extent: a number, or a Size that is known only at run time.
Extent: TypeAlias = int | Size

#: The high end of a dimension without a bound: exporters write it where they mean "to the end".
LARGEST_EXTENT = (1 << 31) - 1


def dimension(
    name: str, low: int = 1, high: int | None = LARGEST_EXTENT, multiple_of: int = 1, expected: int | None = None
) -> Extent:
    """Returns the dimension ``name``: a multiple of ``multiple_of`` from ``low`` to ``high``, both rounded to one.

    ``expected`` is the expected size. An element of an input may be below 0. Raises ValueError if there is no such
    number.
    """
    if multiple_of < 1:
        raise ValueError(f"{low} to {high} in steps of {multiple_of}: steps of at least 1 are legal")
    least = -(-low // multiple_of)
    most = None if high is None else high // multiple_of
    if most is not None and most < least:
        raise ValueError(f"no multiple of {multiple_of} is in {low} to {high}")
    if most == least:
        return least * multiple_of
    if expected is not None and (expected % multiple_of or not low <= expected <= (expected if high is None else high)):
        raise ValueError(f"{expected}, the likely size, is not a multiple of {multiple_of} in {low} to {high}")
    units = None if expected is None else expected // multiple_of
    return Size(of_atom(Symbol(name, least, most, multiple_of, units), multiple_of))


def all_at(extents: Iterable[Extent], values: Mapping[str, int]) -> list[int]:
    """Returns the values of ``extents`` where the dimensions have ``values``, by name; computes shared parts once."""
    known: dict[Atom, int] = {}

    def value_of(symbol: Symbol) -> int:
        return values[symbol.name]

    return [evaluate(each.terms, value_of, known) if isinstance(each, Size) else each for each in extents]


def dimensions_of(extents: Iterable[Extent]) -> dict[str, Symbol]:
    """Returns the dimensions that ``extents`` depend on, by name."""
    return {name: symbol for e in extents if isinstance(e, Size) for name, symbol in e.symbols.items()}


def of_symbol(symbol: Symbol) -> Size:
    """Returns the dimension of ``symbol``."""
    return Size(of_atom(symbol, symbol.unit))


def at_least(left: Extent, right: Extent) -> bool | None:
    """Returns whether ``left >= right`` for all values of the dimensions, or for none; None if it is not known."""
    if isinstance(left, int) and isinstance(right, int):
        return left >= right
    return _at_least_zero(_difference(left, right))


@lru_cache(maxsize=KNOWN)
def _at_least_zero(difference: Terms) -> bool | None:
    seen = samples(difference)
    if all(value >= 0 for value in seen):
        low = bounds.lower_bound(difference)
        if low is not None and low >= 0:
            return True
    if all(value < 0 for value in seen):
        high = bounds.upper_bound(difference)
        return False if high is not None and high < 0 else None
    return None


def never_at_least(left: Extent, right: Extent) -> bool:
    """Returns whether ``left >= right`` is refuted for all values of the dimensions; no proof of it is searched, which
    would take longer.
    """
    if isinstance(left, int) and isinstance(right, int):
        return left < right
    return _never_at_least_zero(_difference(left, right))


@lru_cache(maxsize=KNOWN)
def _never_at_least_zero(difference: Terms) -> bool:
    if any(value >= 0 for value in samples(difference)):
        return False
    high = bounds.upper_bound(difference)
    return high is not None and high < 0


def always_at_least(left: Extent, right: Extent) -> bool:
    """Returns whether ``left >= right`` is known for all values of the dimensions; no refutation is searched."""
    if isinstance(left, int) and isinstance(right, int):
        return left >= right
    return _always_at_least_zero(_difference(left, right))


@lru_cache(maxsize=KNOWN)
def _always_at_least_zero(difference: Terms) -> bool:
    if any(value < 0 for value in samples(difference)):
        return False
    lows = (bounds.lower_bound(difference, thorough=thorough) for thorough in (False, True))
    return any(low is not None and low >= 0 for low in lows)


def same(left: Extent, right: Extent) -> bool | None:
    """Returns whether two extents are equal for all values of the dimensions, or for none; None if it is not known."""
    if left == right:
        return True
    return _is_zero(_difference(left, right))


@lru_cache(maxsize=KNOWN)
def _is_zero(difference: Terms) -> bool | None:
    if (number := as_constant(difference)) is not None:
        return number == 0
    seen = samples(difference)
    if min(seen) <= 0 <= max(seen) and any(seen):
        return None
    low, high = bounds.lower_bound(difference), bounds.upper_bound(difference)
    if (low is not None and low > 0) or (high is not None and high < 0):
        return False
    if low == high == 0:
        return True
    plain = bounds.without_idle_clamps(difference)
    return None if plain == difference else _is_zero(plain)


def agree(left: Extent, right: Extent) -> bool:
    """Returns ``same``; raises UndecidedSizeError if that depends on the input."""
    return _decided(same(left, right), (left, "==", right), left, right, equal=True)


def largest(*extents: Extent) -> Extent:
    """Returns the largest extent, as ``max``; a new atom if it is not known which that is."""
    result, *others = extents
    for other in others:
        result = result + _above_zero(other - result)
    return result


def smallest(*extents: Extent) -> Extent:
    """Returns the smallest extent, as ``min``; a new atom if it is not known which that is."""
    result, *others = extents
    for other in others:
        result = result - _above_zero(result - other)
    return result


def clamped(extent: Extent, low: int, high: int | None = None) -> Extent:
    """Returns ``extent`` clamped to ``low`` and ``high``; proofs treat it as an atom."""
    if isinstance(extent, int):
        return max(low, extent if high is None else min(extent, high))
    least, most = extent.low, extent.high
    if least is not None and least >= low and (high is None or (most is not None and most <= high)):
        return extent
    return low if low == high else Size(of_atom(Clamped(extent.terms, low, high)))


def as_one(extent: Extent, low: int, high: int | None = None) -> Extent:
    """Returns ``clamped``; proofs treat ``extent`` as an atom if it is a sum of more than dimensions and numbers."""
    if not isinstance(extent, Size) or low == high:
        return clamped(extent, low, high)
    found = list(atoms(extent.terms))
    is_one = len(found) == 1 and isinstance(found[0], Clamped) and extent.terms == of_atom(found[0])
    if is_one or all(isinstance(a, Symbol) for a in found):
        return clamped(extent, low, high)
    return Size(of_atom(Clamped(extent.terms, low, high)))


def split_number(extent: Extent) -> tuple[Extent, int]:
    """Returns ``extent`` without its constant part, and that part."""
    if isinstance(extent, int):
        return 0, extent
    terms, number = split_constant(extent.terms)
    return Size(terms), number


def least(extent: Extent) -> int:
    """Returns a number that ``extent`` never falls below, at least 0."""
    return extent if isinstance(extent, int) else max(extent.low or 0, 0)


def never_below(extent: Extent) -> int:
    """Returns an upper bound of ``extent``: at most the largest legal extent, which it is if no bound is known."""
    most = extent if isinstance(extent, int) else extent.high
    return _LARGEST if most is None else min(most, _LARGEST)


def expected_size(extent: Extent) -> int:
    """Returns ``extent`` for the expected sizes of its dimensions; without one the geometric mean of a range's ends."""
    if isinstance(extent, int):
        return extent
    return extent.at({name: _expected_size(symbol) for name, symbol in extent.symbols.items()})


def _expected_size(symbol: Symbol) -> int:
    if symbol.expected is not None:
        return symbol.expected * symbol.unit
    high = 64 * max(symbol.low, 1)
    high = high if symbol.high is None else min(high, symbol.high)
    return symbol.unit * min(max(isqrt(max(symbol.low, 1) * max(high, 0)), symbol.low), high)


def ceildiv(left: Extent, right: Extent) -> Extent:
    """Returns ``left / right`` rounded up."""
    return (left + right - 1) // right


def product(extents: Iterable[Extent]) -> Extent:
    """Returns the product, as ``math.prod``."""
    result: Extent = 1
    for extent in extents:
        result = result * extent
    return result


def undecided(
    subject: str,
    left: Extent,
    right: Extent,
    *,
    equal: bool = False,
    needed: bool = False,
    broadcasts: bool = False,
    fills: bool = False,
) -> UndecidedSizeError:
    """Returns the error that ``subject`` depends on the input: whether ``left`` is at least, or ``equal`` to,
    ``right``.

    ``needed``: if it is not, no model can be run; with ``broadcasts``, unless one of the two is 1. ``fills``: if it is
    not, a tensor has no elements.
    """
    error = UndecidedSizeError(subject + _depends(left, right))
    error.question = Question(_difference(left, right), equal, needed, broadcasts, fills)
    return error


def must_agree(subject: str, left: Extent, right: Extent) -> bool:
    """Returns whether two extents are equal, where only equal ones can be run.

    Raises UndecidedSizeError, naming ``subject`` has them, if that depends on the input: the importer then unifies
    them, which each run tests.
    """
    equal = same(left, right)
    if equal is None:
        raise undecided(f"{subject}: {left} == {right}", left, right, equal=True, needed=True)
    return equal


def _depends(*extents: Extent) -> str:
    ranges = ", ".join(f"{name} in {range_text(symbol)}" for name, symbol in dimensions_of(extents).items())
    return f": for {ranges} it depends on the input; give these a narrower range, or a value"


def _terms(extent: Extent) -> Terms:
    return extent.terms if isinstance(extent, Size) else constant(extent)


def _difference(left: Extent, right: Extent) -> Terms:
    return add(_terms(left), scale(_terms(right), -1))


@lru_cache(maxsize=KNOWN)
def extent_of(terms: Terms) -> Extent:
    """Returns ``terms`` as an extent: a number if they hold no atom."""
    number = as_constant(terms)
    return Size(terms) if number is None else number


def _decided(
    answer: bool | None, subject: tuple[object, str, object], left: Extent, right: Extent, *, equal: bool = False
) -> bool:
    """Returns ``answer``; raises UndecidedSizeError about ``subject``, whose text is made then only, if it is None."""
    if answer is None:
        raise undecided(" ".join(map(str, subject)), left, right, equal=equal)
    return answer


def _above_zero(value: Extent) -> Extent:
    """Returns ``max(0, value)``; the atom is ``max(0, x)`` or ``max(0, -x)``, with a positive first coefficient."""
    if isinstance(value, int):
        return max(0, value)
    positive = at_least(value, 0)
    if positive is not None:
        return value if positive else 0
    if at_least(0, value):
        return 0
    factor = common_factor(value.terms)
    terms = divide_exactly(value.terms, factor)
    assert terms is not None
    if terms[0][1] < 0:
        return value + Size(of_atom(AboveZero(scale(terms, -1)), factor))
    return Size(of_atom(AboveZero(terms), factor))


def _floor(left: Extent, right: Extent) -> Extent:
    if isinstance(right, Size):
        if not at_least(right, 1):
            raise undecided(f"{left} // {right}: the divisor may be 0", right, 1, needed=True)
        return extent_of(division.floor_by_terms(_terms(left), right.terms))
    if isinstance(left, int) or right == 0:
        return (left if isinstance(left, int) else 1) // right
    return extent_of(division.floor(left.terms, right) if right > 0 else division.floor(scale(left.terms, -1), -right))
