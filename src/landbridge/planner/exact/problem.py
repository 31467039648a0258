"""The input of the kernel: flat sequences of integers in units of the problem's common granule."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from math import gcd
from typing import NamedTuple, Protocol

from landbridge.planner.buffers import Buffer


class Ints(Protocol):
    """A mutable sequence of 64-bit integers: a list when interpreted, an int64 array when compiled."""

    def __getitem__(self, index: int, /) -> int: ...
    def __setitem__(self, index: int, value: int, /) -> None: ...
    def __len__(self) -> int: ...


class Problem(NamedTuple):
    """The buffers 0..n in order of their first section; a *section* is a step at which a maximal set is alive.

    Buffer j spans sections ``first[j] <= q < last[j]``. ``conflict`` lists, from ``conflict_at[j]`` to
    ``conflict_at[j + 1]``, the buffers alive together with j; ``starting_at[q]`` is the first buffer of those whose
    first section is q or later. ``base[j]`` is the least offset, ``key1`` and ``key2`` are hash factors.
    """

    size: Ints
    alignment: Ints
    base: Ints
    first: Ints
    last: Ints
    conflict_at: Ints
    conflict: Ints
    section_at: Ints
    section: Ints
    starting_at: Ints
    key1: Ints
    key2: Ints


class Scaled(NamedTuple):
    """A Problem with its mapping back to bytes: ``members``, the index of each of its buffers, and bytes to a
    ``unit``."""

    problem: Problem
    members: list[int]
    unit: int


def scaled(buffers: Sequence[Buffer], conflicts: Sequence[Sequence[int]]) -> Scaled:
    """Returns the Problem of the buffers with bytes; ``conflicts`` as `landbridge.planner.conflicts` returns them.

    Offsets that matter are sums of sizes, each rounded up to an alignment, or counted from a pin; so all are multiples
    of ``unit``, and sizes may be rounded up to the smallest alignment.
    """
    steps = _sections(buffers)
    spans = {i: (bisect_left(steps, b.start), bisect_left(steps, b.end)) for i, b in enumerate(buffers) if b.size}
    index = sorted(spans, key=lambda i: spans[i])
    number = {i: j for j, i in enumerate(index)}
    granule = min((buffers[i].alignment for i in index), default=1)
    sizes = [-(-buffers[i].size // granule) * granule for i in index]
    unit = _unit(sizes, [buffers[i] for i in index])
    firsts, lasts = [spans[i][0] for i in index], [spans[i][1] for i in index]
    together = [[number[k] for k in conflicts[i]] for i in index]
    sections: list[list[int]] = [[] for _ in steps]
    for j, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
        for q in range(first, last):
            sections[q].append(j)
    rng = random.Random(0)
    problem = Problem(
        size=[size // unit for size in sizes],
        alignment=[max(1, buffers[i].alignment // unit) for i in index],
        base=[(buffers[i].offset or 0) // unit for i in index],
        first=firsts,
        last=lasts,
        conflict_at=_starts(together),
        conflict=list(chain.from_iterable(together)),
        section_at=_starts(sections),
        section=list(chain.from_iterable(sections)),
        starting_at=[bisect_left(firsts, q) for q in range(len(steps) + 1)],
        key1=[rng.getrandbits(60) | 1 for _ in index],
        key2=[rng.getrandbits(60) | 1 for _ in index],
    )
    return Scaled(problem, index, unit)


def _sections(buffers: Sequence[Buffer]) -> list[int]:
    """Returns the starts after which a buffer ends before another starts: there the live set is maximal."""
    events = sorted(event for b in buffers if b.size for event in ((b.start, 1), (b.end, 0)))
    return [t for (t, starts), (_, again) in pairwise(events) if starts and not again]


def _unit(sizes: Sequence[int], buffers: Sequence[Buffer]) -> int:
    unit = gcd(*sizes, *(b.offset or 0 for b in buffers))
    if all(unit % b.alignment == 0 for b in buffers):
        return max(1, unit)
    return gcd(unit, *(b.alignment for b in buffers))


def _starts(lists: Sequence[Sequence[int]]) -> list[int]:
    return list(accumulate(map(len, lists), initial=0))
