"""Prints Sizes as text that parsing.py reads: ``3*W/4 + (W + 1)//2 - 5``.

``/`` divides exactly: of a W that is a multiple of 8 there is ``W/8``. ``//`` rounds down.
"""

from __future__ import annotations

from functools import lru_cache

from landbridge.sizes.terms import KNOWN, AboveZero, Atom, Clamped, Floor, Product, Symbol, Terms, as_constant


def text_of(terms: Terms) -> str:
    """Returns ``terms`` as the text of a sum."""
    if not terms:
        return "0"
    parts: list[str] = []
    for product, coefficient in terms:
        text = _product(product, abs(coefficient))
        sign = "-" if coefficient < 0 else "+"
        parts.append(f" {sign} {text}" if parts else ("-" if sign == "-" else "") + text)
    return "".join(parts)


def written(terms: Terms) -> int:
    """Returns how many dimensions and numbers the text of ``terms`` has, a factor of 1 included, without making it: it
    repeats an atom wherever that is nested.
    """
    return sum(1 + sum(power * _written(atom) for atom, power in product) for product, _ in terms)


@lru_cache(maxsize=KNOWN)
def _written(atom: Atom) -> int:
    match atom:
        case Floor(numerator, divisor):
            return written(numerator) + written(divisor)
        case AboveZero(terms):
            return 1 + written(terms)
        case Clamped(terms):
            return 2 + written(terms)
    return 1


def _product(product: Product, coefficient: int) -> str:
    """Returns the text of a term; symbols stand for dimensions and not for their numbers of units."""
    unit = 1
    factors = []
    for atom, power in product:
        factors += [_atom(atom)] * power
        if isinstance(atom, Symbol):
            unit *= atom.unit**power
    from fractions import Fraction  # this imports decimal; most programs print no size

    number = Fraction(coefficient, unit)
    if number.numerator != 1 or not factors:
        factors.insert(0, str(number.numerator))
    return "*".join(factors) + (f"/{number.denominator}" if number.denominator != 1 else "")


def _atom(atom: Atom) -> str:
    match atom:
        case Symbol(name):
            return name
        case Floor(numerator, divisor):
            by = as_constant(divisor)
            return f"(({text_of(numerator)})//{f'({text_of(divisor)})' if by is None else by})"
        case AboveZero(terms):
            return f"max(0, {text_of(terms)})"
        case Clamped(terms, low, high):
            return f"clamped({text_of(terms)}, {low}" + (")" if high is None else f", {high})")


def range_text(symbol: Symbol) -> str:
    """Returns the range of the dimension: ``32..2560:8@320`` for multiples of 8 with the expected size 320."""
    ends = f"{symbol.low * symbol.unit}..{'' if symbol.high is None else symbol.high * symbol.unit}"
    step = "" if symbol.unit == 1 else f":{symbol.unit}"
    return f"{ends}{step}" + ("" if symbol.expected is None else f"@{symbol.expected * symbol.unit}")


def closest_text(symbol: Symbol, number: int) -> str:
    """Returns legal values near ``number``, which is illegal for the dimension: ``"multiples of 4, as 320 or 324"``."""
    units = number // symbol.unit
    high = max(symbol.low, units + 1) if symbol.high is None else symbol.high
    closest = dict.fromkeys(min(high, max(symbol.low, each)) * symbol.unit for each in (units, units + 1))
    subject = f"multiples of {symbol.unit}, as" if symbol.unit > 1 else "numbers as"
    return f"{subject} {' or '.join(map(str, closest))}"
