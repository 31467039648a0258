"""Mutants of events among many others, and of waits of no time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from landbridge.device.api import Event, Region, Stream
from tests.testing.mutants import Correct


@dataclass
class _Slot:
    """An event that is the number of an entry in a table of the device."""

    table: dict[int, Event]
    number: int
    event: Event
    is_of_others: Callable[[Event], bool]

    def query(self) -> bool:
        current = self.table[self.number]
        return self.event.query() if current is self.event else self.is_of_others(current)

    def synchronize(self, timeout: float | None = None) -> bool:
        current = self.table[self.number]
        return self.event.synchronize(timeout) if current is self.event else self.is_of_others(current)


class _Ring(Correct):
    """Events have entries of a ring of ``size``, which are used again whoever still has the event."""

    size = 64

    def __init__(self) -> None:
        super().__init__()
        self.table: dict[int, Event] = {}
        self.events = 0

    def record_event(self, index: int, stream: Stream | None) -> Any:
        event = super().record_event(index, stream)
        self.events += 1
        number = self.events % self.size
        self.table[number] = event
        return _Slot(self.table, number, event, self.of_others)

    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None:
        super().wait_event(index, stream, event.event if isinstance(event, _Slot) else event)

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        first, last = (event.event if isinstance(event, _Slot) else event for event in (start, end))
        return super().elapsed_ms(first, last)

    def of_others(self, current: Event) -> bool:
        """What an event says whose entry is another one's."""
        raise NotImplementedError


class SixtyFourEvents(_Ring):
    """There are 64 events: one that is older is as the one that took its place, which may be pending."""

    caught_by = "test_events_among_many"

    def of_others(self, current: Event) -> bool:
        return current.query()


class EventsOfEightBits(_Ring):
    """There are 256 events: one whose place was taken counts as done."""

    caught_by = "test_events_among_many"
    size = 256

    def of_others(self, current: Event) -> bool:
        return True


@dataclass
class _NoTime:
    """An event for which no time is for ever."""

    event: Event

    def query(self) -> bool:
        return self.event.query()

    def synchronize(self, timeout: float | None = None) -> bool:
        return self.event.synchronize(timeout or None)


class NoTimeIsForEver(Correct):
    """synchronize(0) of a copy's event waits until it is done."""

    caught_by = "test_synchronize_of_no_time"

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        event = super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)
        return event and _NoTime(event)

    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None:
        super().wait_event(index, stream, event.event if isinstance(event, _NoTime) else event)


class NoTimeOfAnEventIsForEver(Correct):
    """synchronize(0) of an event that was recorded waits until it is done."""

    caught_by = "test_synchronize_of_no_time"

    def record_event(self, index: int, stream: Stream | None) -> Any:
        return _NoTime(super().record_event(index, stream))

    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None:
        super().wait_event(index, stream, event.event if isinstance(event, _NoTime) else event)

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        first, last = (event.event if isinstance(event, _NoTime) else event for event in (start, end))
        return super().elapsed_ms(first, last)
