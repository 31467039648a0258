"""Overlap: which of the steps that devices still work on must be done before the next step of a program.

It is computed when the program is bound, from the bytes that steps touch. A device works in order, so its own steps
need not wait for each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

from landbridge.device.api import Device
from landbridge.records import record

#: The most calls of the host that device work is moved before: binding looks no further, to save time.
_EARLIEST = 64

_T = TypeVar("_T")


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


@record(frozen=True, slots=True)
class Item(Generic[_T]):
    """A step ``subject`` of ``device`` (None: the host) and what it touches; ``touched`` None means anything."""

    subject: _T
    device: Device | None
    touched: Sequence[Touch] | None


def devices_first(items: Sequence[Item[_T]]) -> list[_T]:
    """Returns the subjects with work of devices moved before independent work of the host.

    Host and device each keep their own order.
    """
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
    """The steps in flight at one point of a list of steps, by numbers that are assigned here."""

    def __init__(self) -> None:
        self._flying: dict[int, tuple[Device, list[Touch]]] = {}
        self._next = 0

    def __bool__(self) -> bool:
        """Returns whether any step is in flight."""
        return bool(self._flying)

    def number(self) -> int:
        """Returns a new number for a step that will be in flight."""
        self._next += 1
        return self._next

    def start(self, number: int, device: Device, touched: Sequence[Touch]) -> None:
        """Record that step ``number`` starts on ``device`` and touches ``touched``, besides what was recorded
        before.
        """
        self._flying.setdefault(number, (device, []))[1].extend(touched)

    def before(self, touched: Sequence[Touch], device: Device | None = None) -> tuple[int, ...]:
        """Returns the steps in flight that a step which touches ``touched`` must wait for, and removes them.

        ``device``: the device of that step, None for the host.
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
        """Returns every step in flight, and removes all."""
        found = tuple(self._flying)
        self._flying.clear()
        return found
