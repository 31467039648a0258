"""SizeFormulas: evaluates many extents together, for many choices of dimensions.

A shared part of extents, such as a quotient, is a column that is computed once; an extent is then a sum of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from landbridge.records import record
from landbridge.sizes.size import Extent, Size
from landbridge.sizes.terms import AboveZero, Atom, Clamped, Floor, Product, Symbol, Terms, constant

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The largest value of a column that numpy computes: sums of two still fit 64 bits.
_MOST = 1 << 62

#: A sum of columns, each with its coefficient.
_Sum: TypeAlias = tuple[tuple[int, int], ...]


@record(frozen=True, slots=True, eq=False)
class _Of:
    """A column of the dimension ``name``, in units."""

    name: str
    unit: int


@record(frozen=True, slots=True, eq=False)
class _Times:
    """A product of columns, each as often as it is listed."""

    factors: tuple[int, ...]


@record(frozen=True, slots=True, eq=False)
class _Quotient:
    """A column ``numerator // divisor``."""

    numerator: _Sum
    divisor: _Sum


@record(frozen=True, slots=True, eq=False)
class _Between:
    """A column ``sum`` clamped to ``low`` and ``high`` (None: no bound)."""

    sum: _Sum
    low: int
    high: int | None


_Column: TypeAlias = _Of | _Times | _Quotient | _Between


class SizeFormulas:
    """Evaluates ``extents``, in order."""

    def __init__(self, extents: Sequence[Extent]) -> None:
        self._columns: list[_Column] = []
        #: Columns by atom or product; column 0 is 1.
        self._known: dict[Atom | Product, int] = {(): 0}
        self._sums = [self._sum(each.terms if isinstance(each, Size) else constant(each)) for each in extents]
        flat = [term for each in self._sums for term in each or ((0, 0),)]
        self._terms = np.array([column for column, _ in flat], np.intp)
        self._fit = all(abs(coefficient) < _MOST for _, coefficient in flat)
        self._coefficients = np.array([c for _, c in flat] if self._fit else [], np.int64)[:, None]
        #: The first term of each extent.
        self._begins = np.cumsum([0, *(len(each) or 1 for each in self._sums)])[:-1]
        del self._known

    def at_each(self, values: Mapping[str, int | NDArray[np.int64]], count: int) -> NDArray[np.int64]:
        """Returns the values for each of ``count`` choices, a row each.

        A dimension has one value for all choices, or an array. Raises OverflowError if 64 bits may be too few.
        """
        known: list[Any] = [1]
        most = [1]  # the largest absolute value of each column
        for column in self._columns:
            match column:
                case _Of(name, unit):
                    found: Any = values[name] // unit
                    bound = max(abs(int(np.max(found))), abs(int(np.min(found))))
                case _Times(factors):
                    found = reduce(lambda number, factor: number * known[factor], factors[1:], known[factors[0]])
                    bound = reduce(lambda number, factor: number * most[factor], factors, 1)
                case _Quotient(numerator, divisor):
                    bound = max(_bound(numerator, most), _bound(divisor, most))
                    found = _total(numerator, known) // _total(divisor, known)
                case _Between(terms, low, high):
                    bound = max(_bound(terms, most), abs(low), abs(high or 0))
                    found = np.maximum(_total(terms, known), low)  # a third of the time of np.clip
                    found = found if high is None else np.minimum(found, high)
            if bound >= _MOST:
                raise OverflowError(f"{bound} is not an extent")
            known.append(found)
            most.append(bound)
        if not self._fit or any(_bound(each, most) >= _MOST for each in self._sums):
            raise OverflowError("an extent takes more than 64 bits")
        columns = np.empty((len(known), count), np.int64)
        for row, found in zip(columns, known, strict=True):
            row[...] = found
        totals = np.add.reduceat(columns[self._terms] * self._coefficients, self._begins, axis=0)
        return np.ascontiguousarray(totals.T)

    def _sum(self, terms: Terms) -> _Sum:
        return tuple((self._column_of(product), coefficient) for product, coefficient in terms)

    def _column_of(self, product: Product) -> int:
        found = self._known.get(product)
        if found is None:
            factors = tuple(self._column_of_atom(atom) for atom, power in product for _ in range(power))
            found = factors[0] if len(factors) == 1 else self._add(_Times(factors))
            self._known[product] = found
        return found

    def _column_of_atom(self, atom: Atom) -> int:
        found = self._known.get(atom)
        if found is None:
            found = self._known[atom] = self._add(self._of(atom))
        return found

    def _of(self, atom: Atom) -> _Column:
        match atom:
            case Symbol():
                return _Of(atom.name, atom.unit)
            case Floor(numerator, divisor):
                return _Quotient(self._sum(numerator), self._sum(divisor))
            case AboveZero(inner):
                return _Between(self._sum(inner), 0, None)
            case Clamped(inner, low, high):
                return _Between(self._sum(inner), low, high)

    def _add(self, column: _Column) -> int:
        self._columns.append(column)
        return len(self._columns)


def _total(terms: _Sum, known: Sequence[Any]) -> Any:
    total = 0
    for column, coefficient in terms:
        total += known[column] * coefficient
    return total


def _bound(terms: _Sum, most: Sequence[int]) -> int:
    return sum(abs(coefficient) * most[column] for column, coefficient in terms)
