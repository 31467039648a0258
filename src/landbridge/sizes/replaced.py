"""Terms with some of their atoms, or of their dimensions, replaced by others."""

from __future__ import annotations

from collections.abc import Mapping

from landbridge.sizes.size import Extent, Size, clamped, largest
from landbridge.sizes.terms import AboveZero, Atom, Clamped, Floor, Symbol, Terms, of_atom, symbols


def replaced(terms: Terms, dimensions: Mapping[str, Extent]) -> Extent:
    """``terms`` where some of their dimensions are ``dimensions``, by name: narrower ranges, or numbers.

    Raises UndecidedSizeError where it is not known of a divisor that it is not 0 then.
    """
    found = symbols(terms)
    return with_atoms(terms, {s: dimensions[name] // s.unit for name, s in found.items() if name in dimensions})


def with_atoms(terms: Terms, values: Mapping[Atom, Extent]) -> Extent:
    """``terms`` with ``values`` for some of their atoms, those inside of others too; raises as ``replaced``."""
    total: Extent = 0
    for product, number in terms:
        term: Extent = number
        for atom, power in product:
            value = values[atom] if atom in values else _with_inner(atom, values)
            for _ in range(power):
                term = term * value
        total = total + term
    return total


def _with_inner(atom: Atom, values: Mapping[Atom, Extent]) -> Extent:
    match atom:
        case Symbol():
            return Size(of_atom(atom))
        case Floor(numerator, divisor):
            by = with_atoms(divisor, values)
            return 0 if by == 0 else with_atoms(numerator, values) // by  # a divisor is 0 for no values that can be
        case AboveZero(inner):
            return largest(with_atoms(inner, values), 0)
        case Clamped(inner, low, high):
            return clamped(with_atoms(inner, values), low, high)
