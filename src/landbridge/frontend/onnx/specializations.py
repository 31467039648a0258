"""Specializations of a model for ranges of sizes: those that were built, and those that a search has seen."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from typing import TypeAlias

from landbridge.frontend.onnx.equal_sizes import resolved
from landbridge.records import record
from landbridge.sizes.question import Question
from landbridge.sizes.settle import settled
from landbridge.sizes.size import Extent, least, never_below

#: Narrowed dimensions by name: ranges, numbers, or expressions of other dimensions.
Narrowed: TypeAlias = Mapping[str, Extent]


@record
class Specializations:
    """The specializations of a model for different ranges of sizes: ``taken`` has the dimensions of each, by name.

    ``seen``: ranges in which a comparison has one of two legal results. ``begin``: the ranges that a search begins
    with. ``broadcast``: dimensions were unified that may differ in a run if one of them is 1. ``windows``: the
    dimensions for which it was undecided whether the window of a pool fits, each with the comparison.
    """

    taken: list[Mapping[str, Extent]] = field(default_factory=list)
    seen: list[Narrowed] = field(default_factory=list)
    begin: Narrowed = field(default_factory=dict)
    broadcast: bool = False
    windows: list[tuple[Narrowed, Question]] = field(default_factory=list)

    def without_windows(self, fixed: Collection[str]) -> list[Narrowed]:
        """Returns the ranges in which the window of a pool does not fit, without changing the dimensions ``fixed``."""
        return [
            {**narrowed, each.name: each.extent}
            for narrowed, question in self.windows
            for each in settled(question, fixed)
            if not each.answer
        ]

    def others(self) -> Iterator[Narrowed]:
        """Yields, once each, the ranges of ``seen`` that no specialization covers at that time; ``seen`` may grow in
        the meantime.
        """
        for i, each in enumerate(self.seen):
            known = resolved(each)
            if each not in self.seen[:i] and not any(_overlap(known, specialization) for specialization in self.taken):
                yield each


def _overlap(one: Mapping[str, Extent], other: Mapping[str, Extent]) -> bool:
    """Returns whether both have sizes in common, judged by the ends of their ranges."""
    ends = ((_ends(one[name]), _ends(other[name])) for name in one.keys() & other.keys())
    return all(low <= last and first <= high for (low, high), (first, last) in ends)


def _ends(extent: Extent) -> tuple[int, int]:
    return (extent, extent) if isinstance(extent, int) else (least(extent), never_below(extent))
