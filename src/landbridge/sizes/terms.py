"""Terms: a sum of products of atoms, the data of a Size, with the arithmetic that needs no bounds.

An atom is a Symbol, a Floor, an AboveZero or a Clamped, of equal ones one object. A sum is sorted and has no zero
coefficients, so that equal data are equal sums.
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

    That number is the atom, so what the dimension is a multiple of needs no proof: of a W that is a multiple of 8,
    ``W // 4`` is 2 times the atom.
    """

    name: str
    low: int = 1
    high: int | None = None
    unit: int = 1
    #: Of these numbers one that comes often, where that is known.
    expected: int | None = None

    __reduce__ = remade


@record(frozen=True, eq=False)
class Floor(metaclass=Single):
    """``numerator // divisor``, rounded down; a divisor that is a sum is at least 1."""

    numerator: Terms
    divisor: Terms

    __reduce__ = remade


@record(frozen=True, eq=False)
class AboveZero(metaclass=Single):
    """``max(0, terms)``: all minima and maxima are sums of it."""

    terms: Terms

    __reduce__ = remade


@record(frozen=True, eq=False)
class Clamped(metaclass=Single):
    """``terms`` where they are from ``low`` to ``high`` (None: no bound), else the nearer end: of what a run reads and
    is checked, only these count for proofs."""

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
#: Of a product, before equal ones are added.
_MOST_TERMS = 1 << 14
_ONE: Product = ()
#: Results that are kept of each kind of arithmetic: a compile does most of it several times.
KNOWN = 1 << 14


def constant(value: int) -> Terms:
    """``value`` as terms."""
    return ((_ONE, value),) if value else ZERO


def of_atom(atom: Atom, coefficient: int = 1) -> Terms:
    """``coefficient * atom``."""
    return ((((atom, 1),), coefficient),)


def as_constant(terms: Terms) -> int | None:
    """The number that ``terms`` are; None where they hold an atom."""
    if not terms:
        return 0
    return terms[0][1] if terms[0][0] == _ONE else None


def constant_part(terms: Terms) -> int:
    """The term without atoms."""
    return terms[-1][1] if terms and terms[-1][0] == _ONE else 0


def split_constant(terms: Terms) -> tuple[Terms, int]:
    """The terms with atoms, and the one without."""
    number = constant_part(terms)
    return (terms[:-1] if number else terms), number


def plus_constant(terms: Terms, number: int) -> Terms:
    """``terms + number``."""
    rest, before = split_constant(terms)
    return (*rest, (_ONE, before + number)) if before + number else rest


@lru_cache(maxsize=KNOWN)
def add(*sums: Terms) -> Terms:
    """Their sum."""
    found: dict[Product, int] = {}
    for terms in sums:
        for product, coefficient in terms:
            found[product] = found.get(product, 0) + coefficient
    return _sorted(found)


@lru_cache(maxsize=KNOWN)
def scale(terms: Terms, factor: int) -> Terms:
    """``factor * terms``."""
    return tuple((product, coefficient * factor) for product, coefficient in terms) if factor else ZERO


@lru_cache(maxsize=KNOWN)
def multiply(left: Terms, right: Terms) -> Terms:
    """Their product; raises ShapeError where it has too many terms to compute with."""
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
    """``terms / divisor`` where every coefficient is a multiple; None where one is not."""
    if any(coefficient % divisor for _, coefficient in terms):
        return None
    return tuple((product, coefficient // divisor) for product, coefficient in terms)


def common_factor(terms: Terms) -> int:
    """The greatest number that every coefficient is a multiple of; 0 for no terms."""
    return gcd(*(coefficient for _, coefficient in terms))


def atoms(terms: Terms) -> Iterable[Atom]:
    """The atoms of the products; not those inside atoms."""
    return dict.fromkeys(atom for product, _ in terms for atom, _ in product)


def all_atoms(terms: Terms) -> Iterable[Atom]:
    """The atoms of the products and those inside atoms, each once, however many it is inside of."""
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
    """The symbols, those inside atoms too, by name."""
    return {atom.name: atom for atom in all_atoms(terms) if isinstance(atom, Symbol)}


def evaluate(terms: Terms, value_of: Callable[[Symbol], int], known: dict[Atom, int] | None = None) -> int:
    """What ``terms`` are where ``value_of`` gives each dimension (a multiple of its unit).

    ``known`` has the numbers of atoms, and gets those of others: for who evaluates several terms for the same values.
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
    """``product / by`` where every atom is in it as often; None where one is not."""
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
