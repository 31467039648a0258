"""The order of multiply-adds whose factors are in memory, in which factors next to each other are loaded by one
instruction and registers suffice.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.records import record

_VECTOR_BYTES = 16


@record(frozen=True)
class Load:
    """A vector in memory, ``offset`` bytes behind where ``pointer`` is in an iteration."""

    pointer: str
    offset: int


@record(frozen=True)
class LaneProduct:
    """A product that is added to the sum of number ``sum``: of the vector of Load ``factor`` and lane ``lane`` of the
    vector of Load ``scalars``. Loads are numbered.
    """

    sum: int
    factor: int
    scalars: int
    lane: int


@record(frozen=True)
class Fetch:
    """An instruction that loads one vector, or two that are next to each other: numbers of Loads."""

    loads: tuple[int, ...]


def paired_steps(
    loads: Sequence[Load], terms: Sequence[LaneProduct], registers: int
) -> tuple[Fetch | LaneProduct, ...] | None:
    """Returns ``terms`` and the instructions that load their factors, in an order in which at most ``registers``
    vectors are between their load and their last use; each sum gets its terms in the order that they have.

    Returns None where there is no such order, or no factors are next to each other.
    """
    fetches = _fetches(loads, terms)
    if all(len(fetch.loads) == 1 for fetch in fetches):
        return None
    order = _by_factor(terms, fetches)
    if order is None:
        return None
    last = {number: at for at, term in enumerate(order) for number in (term.factor, term.scalars)}
    fetch_of = {number: fetch for fetch in fetches for number in fetch.loads}
    steps: list[Fetch | LaneProduct] = []
    held: set[int] = set()
    for at, term in enumerate(order):
        for number in (term.scalars, term.factor):
            if number not in held:
                steps.append(fetch_of[number])
                held.update(fetch_of[number].loads)
        if len(held) > registers:
            return None
        steps.append(term)
        held.difference_update(number for number in (term.factor, term.scalars) if last[number] == at)
    return tuple(steps)


def _fetches(loads: Sequence[Load], terms: Sequence[LaneProduct]) -> list[Fetch]:
    """Returns the instructions that load what ``terms`` multiply, in the order of their first uses.

    Scalars, of which each stays in its register for several terms, are loaded one by one: registers next to each other
    for all of them and for the factors leave LLVM none for anything else, and it then copies or spills sums.
    """
    factors = list(dict.fromkeys(term.factor for term in terms))
    groups = [(number,) for number in dict.fromkeys(term.scalars for term in terms)]
    paired: list[tuple[int, ...]] = []
    for number in sorted(factors, key=lambda n: (loads[n].pointer, loads[n].offset)):
        load, before = loads[number], loads[paired[-1][0]] if paired and len(paired[-1]) == 1 else None
        if before and load.pointer == before.pointer and load.offset == before.offset + _VECTOR_BYTES:
            paired[-1] += (number,)
        else:
            paired.append((number,))
    first = {number: at for at, number in enumerate(factors)}
    return [Fetch(group) for group in (*groups, *sorted(paired, key=lambda group: min(first[n] for n in group)))]


def _by_factor(terms: Sequence[LaneProduct], fetches: Sequence[Fetch]) -> list[LaneProduct] | None:
    """Returns ``terms`` in the order in which ``fetches`` load their factors; None where a sum would get its own in
    another order.
    """
    ranks = {number: (at, i) for at, fetch in enumerate(fetches) for i, number in enumerate(fetch.loads)}
    order = sorted(enumerate(terms), key=lambda each: ranks[each[1].factor])
    latest: dict[int, int] = {}
    for at, term in order:
        if latest.get(term.sum, -1) > at:
            return None
        latest[term.sum] = at
    return [term for _, term in order]
