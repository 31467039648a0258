"""Sample values of sums: a sign that one sample contradicts needs no search for a proof.

Most comparisons of sums have no proof. A search tries all replacements of their atoms before it gives up, where one
counterexample is enough.
"""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

from landbridge.sizes.terms import AboveZero, Atom, Clamped, Floor, Symbol, Terms

#: The distance from its low end up to which a dimension without a high end is sampled.
_LARGE = 1 << 24
#: Each dimension is sampled at its low end, at its high end, close to the low end, and anywhere between.
_POINTS = 4


@lru_cache(maxsize=1 << 16)
def samples(terms: Terms) -> tuple[int, ...]:
    """Returns the values of ``terms`` at a few fixed choices of the dimensions."""
    values = [0] * _POINTS
    for product, coefficient in terms:
        term = [coefficient] * _POINTS
        for atom, power in product:
            term = [n * value**power for n, value in zip(term, _of_atom(atom), strict=True)]
        values = [total + n for total, n in zip(values, term, strict=True)]
    return tuple(values)


@lru_cache(maxsize=1 << 16)
def _of_atom(atom: Atom) -> tuple[int, ...]:
    match atom:
        case Symbol():
            return _of_symbol(atom)
        case Floor(numerator, divisor):
            return tuple(n // by for n, by in zip(samples(numerator), samples(divisor), strict=True))
        case AboveZero(terms):
            return tuple(max(0, value) for value in samples(terms))
        case Clamped(terms, low, high):
            return tuple(max(low, value if high is None else min(value, high)) for value in samples(terms))


def _of_symbol(symbol: Symbol) -> tuple[int, ...]:
    low = symbol.low
    high = low + _LARGE if symbol.high is None else symbol.high
    drawn = crc32(symbol.name.encode())  # differs for each name and is the same in each process
    return low, high, low + drawn % (min(high - low, 8) + 1), low + (drawn >> 8) % (high - low + 1)
