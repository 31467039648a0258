"""Dependences: which steps of a program must come before a step, from the bytes that they touch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from landbridge.records import record


class Touch(NamedTuple):
    """A use of the bytes ``start <= b < stop`` of ``memory``, which is compared by identity."""

    memory: Hashable
    start: int
    stop: int
    writes: bool

    def conflicts(self, other: Touch) -> bool:
        """Returns whether one of the two must be over before the other begins."""
        return (
            (self.writes or other.writes)
            and self.memory == other.memory
            and self.start < other.stop
            and other.start < self.stop
        )


def any_conflict(touched: Iterable[Touch], others: Sequence[Touch]) -> bool:
    """Returns whether a step that touches ``touched`` and one that touches ``others`` must not run at once."""
    return any(touch.conflicts(other) for touch in touched for other in others)


def dependences(touched: Sequence[Sequence[Touch]]) -> list[set[int]]:
    """Returns for each step, by number, the earlier steps that it must directly follow; ``touched`` has what each
    touches.

    A step that follows another only because of a third one between them need not be named.
    """
    uses: dict[Hashable, _Uses] = {}
    found: list[set[int]] = []
    for number, touches in enumerate(touched):
        before: set[int] = set()
        for touch in touches:
            if touch.start < touch.stop:
                before |= uses.setdefault(touch.memory, _Uses()).add(number, touch)
        before.discard(number)
        found.append(before)
    return found


@record(frozen=True, slots=True)
class _Span:
    """Bytes that the same steps used last: ``writer`` wrote them (None: nobody), and then ``readers`` read them."""

    start: int
    stop: int
    writer: int | None
    readers: tuple[int, ...]


class _Uses:
    """The last uses of one memory, as disjoint spans in order."""

    def __init__(self) -> None:
        self._spans: list[_Span] = []

    def add(self, number: int, touch: Touch) -> set[int]:
        """Record that step ``number`` makes the use ``touch``; returns the steps that it must follow."""
        start, stop, _ = touch[1:]
        first = bisect_right(self._spans, start, key=attrgetter("stop"))
        last = bisect_left(self._spans, stop, key=attrgetter("start"))
        before: set[int] = set()
        spans: list[_Span] = []
        reached = start
        for span in self._spans[first:last]:
            if span.start < start:
                spans.append(_Span(span.start, start, span.writer, span.readers))
            elif reached < span.start and not touch.writes:
                spans.append(_Span(reached, span.start, None, (number,)))
            low, high = max(span.start, start), min(span.stop, stop)
            if touch.writes and span.readers:
                before.update(span.readers)
            elif span.writer is not None:
                before.add(span.writer)
            if not touch.writes:
                spans.append(_Span(low, high, span.writer, (*span.readers, number)))
            reached = high
        if touch.writes:
            spans.append(_Span(start, stop, number, ()))
        elif reached < stop:
            spans.append(_Span(reached, stop, None, (number,)))
        if first < last and (after := self._spans[last - 1]).stop > stop:
            spans.append(_Span(stop, after.stop, after.writer, after.readers))
        self._spans[first:last] = spans
        return before
