"""Substitutes atoms or dimensions of terms."""

from __future__ import annotations

from collections.abc import Mapping

from landbridge.sizes.size import Extent, Size, clamped, largest
from landbridge.sizes.terms import AboveZero, Atom, Clamped, Floor, Symbol, Terms, of_atom, symbols


def replaced(terms: Terms, dimensions: Mapping[str, Extent]) -> Extent:
    """Returns ``terms`` with ``dimensions`` in place of some dimensions, by name: narrower ranges, or numbers.

    Raises UndecidedSizeError if a divisor is then not known to differ from 0.
    """
    found = symbols(terms)
    return with_atoms(terms, {s: dimensions[name] // s.unit for name, s in found.items() if name in dimensions})


def with_atoms(terms: Terms, values: Mapping[Atom, Extent]) -> Extent:
    """Returns ``terms`` with ``values`` in place of some atoms, also inside of other atoms; raises as ``replaced``."""
    return _with_atoms(terms, dict(values))


def _with_atoms(terms: Terms, known: dict[Atom, Extent]) -> Extent:
    """Substitute atoms and memoize each in ``known``, as atoms are nested in several others."""
    total: Extent = 0
    for product, number in terms:
        term: Extent = number
        for atom, power in product:
            if (value := known.get(atom)) is None:
                value = known[atom] = _with_inner(atom, known)
            for _ in range(power):
                term = term * value
        total = total + term
    return total


def _with_inner(atom: Atom, known: dict[Atom, Extent]) -> Extent:
    match atom:
        case Symbol():
            return Size(of_atom(atom))
        case Floor(numerator, divisor):
            by = _with_atoms(divisor, known)
            return 0 if by == 0 else _with_atoms(numerator, known) // by  # legal values give no divisor of 0
        case AboveZero(inner):
            return largest(_with_atoms(inner, known), 0)
        case Clamped(inner, low, high):
            return clamped(_with_atoms(inner, known), low, high)
