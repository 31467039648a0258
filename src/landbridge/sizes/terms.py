"""Terms: sums of products of atoms, the data of a Size, with the arithmetic that needs no bounds.

An atom is a Symbol, a Floor, an AboveZero or a Clamped; equal atoms are one object. A sum is sorted and has no zero
coefficients, so that equal sums have equal data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from math import gcd
from typing import TypeAlias

from landbridge.errors import ShapeError
from landbridge.records import record
from landbridge.sizes.single import Single, remade


@record(frozen=True, eq=False)
class Symbol(metaclass=Single):
    """A dimension of a program, ``unit`` times a number from ``low`` to ``high`` (None: no bound).

    That number is the atom, so divisibility of the dimension needs no proof: of a W that is a multiple of 8, ``W // 4``
    is 2 times the atom.
    """

    name: str
    low: int = 1
    high: int | None = None
    unit: int = 1
    #: The expected value of this number, if it is known.
    expected: int | None = None

    __reduce__ = remade


@record(frozen=True, eq=False)
class Floor(metaclass=Single):
    """The atom ``numerator // divisor``, rounded down; a divisor that is a sum is at least 1."""

    numerator: Terms
    divisor: Terms

    __reduce__ = remade


@record(frozen=True, eq=False)
class AboveZero(metaclass=Single):
    """The atom ``max(0, terms)``: all minima and maxima are sums of it."""

    terms: Terms

    __reduce__ = remade


@record(frozen=True, eq=False)
class Clamped(metaclass=Single):
    """The atom ``terms`` clamped to ``low`` and ``high`` (None: no bound).

    It stands for values that are read and checked at run time: proofs use only these bounds.
    """

    terms: Terms
    low: int
    high: int | None

    __reduce__ = remade


Atom: TypeAlias = "Symbol | Floor | AboveZero | Clamped"
#: Atoms with their powers, sorted.
Product: TypeAlias = tuple[tuple[Atom, int], ...]
#: Products with coefficients, sorted, the constant last.
Terms: TypeAlias = tuple[tuple[Product, int], ...]

ZERO: Terms = ()
#: Terms of a product, before equal ones are added.
_MOST_TERMS = 1 << 14
_ONE: Product = ()
#: The size of the cache of each kind of arithmetic: a compile repeats most of it.
KNOWN = 1 << 14


def constant(value: int) -> Terms:
    """Returns a number as terms."""
    return ((_ONE, value),) if value else ZERO


def of_atom(atom: Atom, coefficient: int = 1) -> Terms:
    """Returns ``coefficient * atom``."""
    return ((((atom, 1),), coefficient),)


def as_constant(terms: Terms) -> int | None:
    """Returns ``terms`` as a number; None if they hold an atom."""
    if not terms:
        return 0
    return terms[0][1] if terms[0][0] == _ONE else None


def constant_part(terms: Terms) -> int:
    """Returns the term without atoms."""
    return terms[-1][1] if terms and terms[-1][0] == _ONE else 0


def split_constant(terms: Terms) -> tuple[Terms, int]:
    """Returns the terms with atoms, and the one without."""
    number = constant_part(terms)
    return (terms[:-1] if number else terms), number


def plus_constant(terms: Terms, number: int) -> Terms:
    """Returns ``terms + number``."""
    rest, before = split_constant(terms)
    return (*rest, (_ONE, before + number)) if before + number else rest


@lru_cache(maxsize=KNOWN)
def add(*sums: Terms) -> Terms:
    """Returns the sum of all."""
    found: dict[Product, int] = {}
    for terms in sums:
        for product, coefficient in terms:
            found[product] = found.get(product, 0) + coefficient
    return _sorted(found)


@lru_cache(maxsize=KNOWN)
def scale(terms: Terms, factor: int) -> Terms:
    """Returns ``factor * terms``."""
    return tuple((product, coefficient * factor) for product, coefficient in terms) if factor else ZERO


@lru_cache(maxsize=KNOWN)
def multiply(left: Terms, right: Terms) -> Terms:
    """Returns the product; raises ShapeError if it has too many terms to compute with."""
    if len(left) * len(right) > _MOST_TERMS:
        raise ShapeError(f"a product of sums of {len(left)} and {len(right)} terms is not computed with")
    found: dict[Product, int] = {}
    for a, x in left:
        for b, y in right:
            product = _product(a, b)
            found[product] = found.get(product, 0) + x * y
    return _sorted(found)


@lru_cache(maxsize=KNOWN)
def divide_exactly(terms: Terms, divisor: int) -> Terms | None:
    """Returns ``terms / divisor`` if every coefficient is a multiple; else None."""
    if any(coefficient % divisor for _, coefficient in terms):
        return None
    return tuple((product, coefficient // divisor) for product, coefficient in terms)


def common_factor(terms: Terms) -> int:
    """Returns the greatest number that every coefficient is a multiple of; 0 for no terms."""
    return gcd(*(coefficient for _, coefficient in terms))


def atoms(terms: Terms) -> Iterable[Atom]:
    """Returns the atoms of the products, without those nested in atoms."""
    return dict.fromkeys(atom for product, _ in terms for atom, _ in product)


def all_atoms(terms: Terms) -> Iterable[Atom]:
    """Returns the atoms of the products and those nested in atoms, each once."""
    found: dict[Atom, None] = {}
    _add_atoms(terms, found)
    return found


def _add_atoms(terms: Terms, found: dict[Atom, None]) -> None:
    for product, _ in terms:
        for atom, _ in product:
            if atom not in found:
                found[atom] = None
                match atom:
                    case Floor(numerator, divisor):
                        _add_atoms(numerator, found)
                        _add_atoms(divisor, found)
                    case AboveZero(inner) | Clamped(inner):
                        _add_atoms(inner, found)


def symbols(terms: Terms) -> dict[str, Symbol]:
    """Returns the symbols by name, also those nested in atoms."""
    return {atom.name: atom for atom in all_atoms(terms) if isinstance(atom, Symbol)}


def evaluate(terms: Terms, value_of: Callable[[Symbol], int], known: dict[Atom, int] | None = None) -> int:
    """Returns the value of ``terms`` where ``value_of`` gives each dimension (a multiple of its unit).

    ``known`` memoizes the values of atoms, for several terms at the same dimensions.
    """
    return _evaluated(terms, value_of, {} if known is None else known)


def _evaluated(terms: Terms, value_of: Callable[[Symbol], int], known: dict[Atom, int]) -> int:
    total = 0
    for product, number in terms:
        for atom, power in product:
            value = known.get(atom)
            if value is None:
                value = known[atom] = _value(atom, value_of, known)
            number *= value if power == 1 else value**power
        total += number
    return total


def _value(atom: Atom, value_of: Callable[[Symbol], int], known: dict[Atom, int]) -> int:
    if isinstance(atom, Symbol):
        return value_of(atom) // atom.unit
    if isinstance(atom, Floor):
        return _evaluated(atom.numerator, value_of, known) // _evaluated(atom.divisor, value_of, known)
    value = _evaluated(atom.terms, value_of, known)
    if isinstance(atom, AboveZero):
        return max(0, value)
    return max(atom.low, value if atom.high is None else min(value, atom.high))


@lru_cache(maxsize=KNOWN)
def _product(left: Product, right: Product) -> Product:
    powers: dict[Atom, int] = {}
    for atom, power in (*left, *right):
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=_factor_key))


def divide_product(product: Product, by: Product) -> Product | None:
    """Returns ``product / by`` if it divides exactly; else None."""
    powers = dict(product)
    for atom, power in by:
        powers[atom] = powers.get(atom, 0) - power
    return None if any(power < 0 for power in powers.values()) else tuple((a, n) for a, n in powers.items() if n)


def _sorted(found: dict[Product, int]) -> Terms:
    return tuple(sorted(((p, c) for p, c in found.items() if c), key=lambda term: _product_key(term[0])))


def _factor_key(factor: tuple[Atom, int]) -> tuple[object, ...]:
    return (*_atom_key(factor[0]), factor[1])


@lru_cache(maxsize=KNOWN)
def _product_key(product: Product) -> tuple[object, ...]:
    degree = sum(power for _, power in product)
    return (-degree, tuple(map(_factor_key, product)))


@lru_cache(maxsize=KNOWN)
def _atom_key(atom: Atom) -> tuple[object, ...]:
    match atom:
        case Symbol():
            return (0, atom.name, atom.unit, atom.low, -1 if atom.high is None else atom.high, atom.expected or 0)
        case Floor():
            return (1, _terms_key(atom.numerator), _terms_key(atom.divisor))
        case AboveZero():
            return (2, _terms_key(atom.terms))
        case Clamped():
            return (3, _terms_key(atom.terms), atom.low, -1 if atom.high is None else atom.high)


def _terms_key(terms: Terms) -> tuple[object, ...]:
    return tuple((_product_key(product), coefficient) for product, coefficient in terms)
