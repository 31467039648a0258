"""What is told of Sizes where something is done: that what makes them, and may be 0, is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from landbridge.errors import UndecidedSizeError
from landbridge.sizes.bounds import lower_bound, upper_bound
from landbridge.sizes.replaced import with_atoms
from landbridge.sizes.size import Extent, Size, always_at_least
from landbridge.sizes.terms import AboveZero, Atom, Clamped, Symbol, all_atoms, of_atom


def may_be_empty(sizes: Iterable[Extent]) -> bool:
    """Whether a dimension, or what a run reads, may be 0 in ``sizes``."""
    found = (atom for size in sizes if isinstance(size, Size) for atom in all_atoms(size.terms))
    return any(isinstance(atom, Symbol | Clamped) and atom.low <= 0 for atom in found)


def not_zero_where(turns: Extent | None) -> dict[Atom, Extent]:
    """The atoms that may be 0, as numbers from 1 on: those of which there are no ``turns`` where one is 0."""
    if not isinstance(turns, Size):
        return {}
    return {atom: _from_one(atom) for atom in all_atoms(turns.terms) if _may_be_zero(atom) and _are_none(turns, atom)}


def readings(size: Size, told: Mapping[Atom, Extent]) -> Iterator[Extent]:
    """What ``size`` is where atoms are as ``told``, at least one: with dimensions from 1 on, whose sums are known by
    them; with all that is; and with what a maximum is the larger of."""
    symbols: dict[Atom, Extent] = {atom: value for atom, value in told.items() if isinstance(atom, Symbol)}
    sides: dict[Atom, Extent] = {atom: Size(atom.terms) for atom in told if isinstance(atom, AboveZero)}
    ways = [symbols, told, {**told, **sides}][: 3 if sides else 1 + (len(symbols) < len(told))]
    found = [each for each in (_with(size, way) for way in ways) if each is not None]
    yield from found or [size]


def _may_be_zero(atom: Atom) -> bool:
    terms = of_atom(atom)
    return lower_bound(terms) == 0 and upper_bound(terms) != 0


def _are_none(turns: Size, atom: Atom) -> bool:
    left = _with(turns, {atom: 0})
    return left is not None and always_at_least(0, left)


def _with(size: Size, values: Mapping[Atom, Extent]) -> Extent | None:
    """``size`` with ``values`` for atoms; None where a divisor in it may be 0, as far as is known then."""
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
