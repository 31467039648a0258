"""Overlap: which of the steps that devices are still at work on must be done before the next step of a program.

Known when the program is bound: steps say what bytes they touch. A device does what it is given in order, so that its
own steps need not wait for each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

from landbridge.device.api import Device
from landbridge.records import record

#: How many calls of the host a device's work may be given early: as far as binding looks, for its time's sake.
_EARLIEST = 64

_T = TypeVar("_T")


class Touch(NamedTuple):
    """A use of the bytes ``start <= b < stop`` of ``memory``, which is told from other memory by its identity."""

    memory: Hashable
    start: int
    stop: int
    writes: bool

    def conflicts(self, other: Touch) -> bool:
        """Whether one of the two must be over before the other begins."""
        return (
            (self.writes or other.writes)
            and self.memory == other.memory
            and self.start < other.stop
            and other.start < self.stop
        )


@record(frozen=True, slots=True)
class Item(Generic[_T]):
    """``subject`` is done by ``device`` (None: the host) and touches this, or anything where ``touched`` is None."""

    subject: _T
    device: Device | None
    touched: Sequence[Touch] | None


def devices_first(items: Sequence[Item[_T]]) -> list[_T]:
    """What is to be done, in an order that gives devices their work before work of the host which nothing orders it
    with; host and device each keep their own order."""
    order: list[Item[_T]] = []
    for item in items:
        location = len(order)
        if item.device is not None:
            while location and len(order) - location < _EARLIEST and _may_pass(item, order[location - 1]):
                location -= 1
        order.insert(location, item)
    return [item.subject for item in order]


def _may_pass(item: Item[_T], before: Item[_T]) -> bool:
    if before.device is not None or before.touched is None or item.touched is None:
        return False
    return not any(touch.conflicts(other) for touch in item.touched for other in before.touched)


class Overlap:
    """The steps in flight at one place of a list of steps, each by a number that is given here."""

    def __init__(self) -> None:
        self._flying: dict[int, tuple[Device, list[Touch]]] = {}
        self._next = 0

    def __bool__(self) -> bool:
        """Whether any is."""
        return bool(self._flying)

    def number(self) -> int:
        """A number for a step that will be in flight."""
        self._next += 1
        return self._next

    def start(self, number: int, device: Device, touched: Sequence[Touch]) -> None:
        """Step ``number`` is given to ``device`` and touches this, besides what it was said to touch already."""
        self._flying.setdefault(number, (device, []))[1].extend(touched)

    def before(self, touched: Sequence[Touch], device: Device | None = None) -> tuple[int, ...]:
        """The steps that a step which touches this must wait for, and which are in flight no more then.

        ``device``: where it is done, None for the host.
        """
        found = tuple(
            number
            for number, (where, flying) in self._flying.items()
            if where != device and any(touch.conflicts(other) for touch in touched for other in flying)
        )
        for number in found:
            del self._flying[number]
        return found

    def all(self) -> tuple[int, ...]:
        """Every step in flight, none of which is any more then."""
        found = tuple(self._flying)
        self._flying.clear()
        return found
