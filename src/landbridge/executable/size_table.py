"""The Sizes of a program in its file: each different one once, in a table that is read without arithmetic.

The JSON form of a table is two lists, ``[atoms, sizes]``. What an instruction has instead of a Size is its number in
``sizes``, as text. A sum is a list of terms, each ``[coefficient, atom, power, atom, power, ...]`` with numbers of
atoms. An atom is one of these, and has only atoms before it::

    ["W", low, high or null, unit, expected or null]    a dimension (``terms.Symbol``)
    [0, numerator, divisor]                             two sums, whose quotient is rounded down
    [1, sum]                                            the larger of 0 and the sum
    [2, sum, low, high or null]                         the sum between two numbers
"""

from __future__ import annotations

from typing import Any

from landbridge.errors import ExecutableError, ShapeError
from landbridge.sizes.size import Size, at_least
from landbridge.sizes.terms import AboveZero, Atom, Clamped, Floor, Symbol, Terms, as_constant

_FLOOR, _ABOVE_ZERO, _CLAMPED = range(3)
#: Above every number in a table.
_END = 1 << 63
#: Powers of an atom, and atoms within one another, of programs that the compiler makes are a few.
_MOST_POWER, _DEEPEST = 64, 200


class SizeTable:
    """The table that a file is written with; ``number`` adds Sizes to it."""

    def __init__(self) -> None:
        self._sizes: dict[Size, str] = {}
        self._atoms: dict[Atom, int] = {}

    def __bool__(self) -> bool:
        return bool(self._sizes)

    def number(self, size: Size) -> str:
        """Returns the text that stands for ``size`` in the file."""
        found = self._sizes.get(size)
        if found is None:
            found = self._sizes[size] = str(len(self._sizes))
            self._add(size.terms)
        return found

    def _add(self, terms: Terms) -> None:
        """Adds the atoms of ``terms``, those within others before these."""
        for product, _ in terms:
            for atom, _ in product:
                if atom not in self._atoms:
                    for inner in _sums_within(atom):
                        self._add(inner)
                    self._atoms[atom] = len(self._atoms)

    def to_json(self) -> list[list[Any]]:
        """Returns the table as plain JSON data."""
        return [list(map(self._atom, self._atoms)), [self._sum(size.terms) for size in self._sizes]]

    def _sum(self, terms: Terms) -> list[list[int]]:
        return [
            [coefficient, *(n for atom, power in product for n in (self._atoms[atom], power))]
            for product, coefficient in terms
        ]

    def _atom(self, atom: Atom) -> list[Any]:
        match atom:
            case Symbol():
                return [atom.name, atom.low, atom.high, atom.unit, atom.expected]
            case Floor():
                return [_FLOOR, self._sum(atom.numerator), self._sum(atom.divisor)]
            case AboveZero():
                return [_ABOVE_ZERO, self._sum(atom.terms)]
            case Clamped():
                return [_CLAMPED, self._sum(atom.terms), atom.low, atom.high]


def _sums_within(atom: Atom) -> tuple[Terms, ...]:
    match atom:
        case Floor(numerator, divisor):
            return numerator, divisor
        case AboveZero(terms) | Clamped(terms):
            return (terms,)
    return ()


def read_size_table(value: Any) -> dict[str, Size]:
    """Returns the Sizes of the table ``value``, plain JSON data, by the texts that stand for them.

    Sums are taken as they are written: sorted, with each product once. Raises ExecutableError for what is no table.
    """
    try:
        atoms, sizes = value
        reader = _Reader()
        for atom in atoms:
            reader.add(atom)
        return {str(number): reader.size(terms) for number, terms in enumerate(sizes)}
    except (ValueError, TypeError, IndexError, ShapeError) as error:
        raise ExecutableError(f"corrupt table of sizes ({error}); save it again") from None


class _Reader:
    def __init__(self) -> None:
        self._atoms: list[Atom] = []
        #: How many atoms are within one another in each.
        self._depths: list[int] = []
        self._depth = 0

    def size(self, terms: Any) -> Size:
        """Returns the Size that is the sum ``terms``."""
        found = self._sum(terms)
        if as_constant(found) is not None:
            raise ValueError("a size depends on no dimension")
        return Size(found)

    def add(self, value: Any) -> None:
        """Adds the atom ``value``."""
        kind, *facts = value
        self._depth = 0
        atom: Atom
        if type(kind) is str:
            low, high, unit, expected = facts
            _check_numbers([low, unit, *(end for end in (high, expected) if end is not None)])
            most = _END if high is None else high
            if not low < most or unit < 1 or not (expected is None or low <= expected <= most):
                raise ValueError(f"dimension {kind[:60]!r} has no such range")
            atom = Symbol(kind, low, high, unit, expected)
        elif kind == _FLOOR:
            numerator, divisor = map(self._sum, facts)
            number = as_constant(divisor)
            if not (at_least(Size(divisor), 1) if number is None else number >= 1):
                raise ValueError("a divisor may be 0")
            atom = Floor(numerator, divisor)
        elif kind == _ABOVE_ZERO:
            (terms,) = map(self._sum, facts)
            atom = AboveZero(terms)
        elif kind == _CLAMPED:
            terms, low, high = facts
            _check_numbers([low] if high is None else [low, high])
            atom = Clamped(self._sum(terms), low, high)
        else:
            raise ValueError(f"there is no atom of kind {str(kind)[:60]}")
        if self._depth >= _DEEPEST:
            raise ValueError(f"more than {_DEEPEST} atoms are within one another")
        self._atoms.append(atom)
        self._depths.append(self._depth + 1)

    def _sum(self, value: Any) -> Terms:
        """Returns the sum ``value``, whose deepest atom is noted in ``_depth``."""
        atoms, depths, found = self._atoms, self._depths, []
        for term in value:
            _check_numbers(term)
            if not term[0] or not len(term) % 2:
                raise ValueError("a term has no coefficient, or an atom has no power")
            product = []
            for number, power in zip(term[1::2], term[2::2], strict=True):
                if number < 0 or not 0 < power <= _MOST_POWER:
                    raise ValueError(f"atom {number} to the power of {power}")
                product.append((atoms[number], power))
                if depths[number] > self._depth:
                    self._depth = depths[number]
            found.append((tuple(product), term[0]))
        return tuple(found)


def _check_numbers(numbers: Any) -> None:
    """Raises ValueError unless ``numbers`` is a list of integers of 64 bits, and not empty."""
    if type(numbers) is not list or {*map(type, numbers)} != {int} or min(numbers) <= -_END or max(numbers) >= _END:
        raise ValueError(f"{str(numbers)[:60]} are no numbers of 64 bits")
