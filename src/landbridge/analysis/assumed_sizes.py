"""Assumptions about Sizes inside code that only runs when its trip count is not 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from landbridge.errors import UndecidedSizeError
from landbridge.sizes.bounds import lower_bound, upper_bound
from landbridge.sizes.replaced import with_atoms
from landbridge.sizes.size import Extent, Size, always_at_least
from landbridge.sizes.terms import AboveZero, Atom, Clamped, Symbol, all_atoms, of_atom


def may_be_empty(sizes: Iterable[Extent]) -> bool:
    """Returns whether a dimension, or a value that is read at run time, may be 0 in ``sizes``."""
    found = (atom for size in sizes if isinstance(size, Size) for atom in all_atoms(size.terms))
    return any(isinstance(atom, Symbol | Clamped) and atom.low <= 0 for atom in found)


def not_zero_where(iterations: Extent | None) -> dict[Atom, Extent]:
    """Returns the atoms that are at least 1 where a loop of ``iterations`` runs, each with its narrower value.

    These are the atoms that may be 0 elsewhere, and that make ``iterations`` 0 if they are.
    """
    if not isinstance(iterations, Size):
        return {}
    return {
        atom: _from_one(atom)
        for atom in all_atoms(iterations.terms)
        if _may_be_zero(atom) and _are_none(iterations, atom)
    }


def readings(size: Size, assumed: Mapping[Atom, Extent]) -> Iterator[Extent]:
    """Yields equal forms of ``size`` under the assumptions ``assumed``, at least one.

    The first assumes dimensions alone, so that sums of them get bounds; the second assumes all atoms; the third
    replaces each assumed maximum by its larger operand.
    """
    symbols: dict[Atom, Extent] = {atom: value for atom, value in assumed.items() if isinstance(atom, Symbol)}
    sides: dict[Atom, Extent] = {atom: Size(atom.terms) for atom in assumed if isinstance(atom, AboveZero)}
    choices = [symbols, assumed, {**assumed, **sides}][: 3 if sides else 1 + (len(symbols) < len(assumed))]
    found = [each for each in (_with(size, values) for values in choices) if each is not None]
    yield from found or [size]


def _may_be_zero(atom: Atom) -> bool:
    terms = of_atom(atom)
    return lower_bound(terms) == 0 and upper_bound(terms) != 0


def _are_none(iterations: Size, atom: Atom) -> bool:
    left = _with(iterations, {atom: 0})
    return left is not None and always_at_least(0, left)


def _with(size: Size, values: Mapping[Atom, Extent]) -> Extent | None:
    """Returns ``size`` with ``values`` for atoms; None if a divisor in it may then be 0."""
    try:
        return with_atoms(size.terms, values)
    except UndecidedSizeError:
        return None


def _from_one(atom: Atom) -> Extent:
    match atom:
        case Symbol() | Clamped():
            return Size(of_atom(replace(atom, low=1)))
        case _:
            return Size(of_atom(Clamped(of_atom(atom), 1, None)))
