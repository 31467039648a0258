"""Mutants of streams, of events, and of what both say of time."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from landbridge.device.api import Event, Region, Stream
from landbridge.errors import DeviceError
from landbridge.testing.conformance.base import ConformanceCase
from landbridge.testing.lazy_queue import Task
from tests.testing.mutants import Correct


@dataclass
class _Answering:
    """An event whose answers are changed."""

    task: Event
    queried: Callable[[Event], Any] = lambda event: event.query()
    waited: Callable[[Event, float | None], Any] = lambda event, timeout: event.synchronize(timeout)

    def query(self) -> Any:
        return self.queried(self.task)

    def synchronize(self, timeout: float | None = None) -> Any:
        return self.waited(self.task, timeout)


class _Events(Correct):
    """Events of copies go through ``answered``."""

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        event = super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)
        return event and self.answered(event)

    def answered(self, event: Event) -> Event:
        return event


class TimeoutsAreTrue(_Events):
    """synchronize(timeout) is True when the timeout is over, done or not."""

    caught_by = "test_synchronize_keeps_its_timeout"

    def answered(self, event: Event) -> Event:
        return _Answering(event, waited=lambda e, t: e.synchronize(t) if t is None or t > 1 else True)


class TimeoutsInMilliseconds(_Events):
    """The timeout is taken for milliseconds."""

    caught_by = "test_synchronize_keeps_its_timeout"

    def answered(self, event: Event) -> Event:
        def wait(e: Event, timeout: float | None) -> bool:
            time.sleep((timeout or 0.0) / 1000)
            return e.query() if timeout is not None else e.synchronize()

        return _Answering(event, waited=wait)


class TimeoutsInKiloseconds(_Events):
    """Seconds are given to a call that takes milliseconds, multiplied once too often."""

    caught_by = "test_synchronize_keeps_its_timeout"

    def answered(self, event: Event) -> Event:
        def wait(e: Event, timeout: float | None) -> bool:
            time.sleep(min(0.6 * ConformanceCase.patience, 1000 * (timeout or 0.0)))
            return e.synchronize()

        return _Answering(event, waited=wait)


class SynchronizeReturnsNothing(_Events):
    """synchronize waits and returns None."""

    caught_by = "test_synchronize_keeps_its_timeout"

    def answered(self, event: Event) -> Event:
        return _Answering(event, waited=lambda e, t: (e.synchronize(t), None)[1])


class GivesUpAtOnce(_Events):
    """A wait with a timeout is one look."""

    caught_by = "test_synchronize_waits_as_long_as_it_takes"

    def answered(self, event: Event) -> Event:
        return _Answering(event, waited=lambda e, t: e.synchronize() if t is None else e.query())


class TrueTooEarly(_Events):
    """A wait without a timeout does not wait."""

    caught_by = "test_synchronize_waits_as_long_as_it_takes"

    def answered(self, event: Event) -> Event:
        return _Answering(event, waited=lambda e, t: True)


class DoneAtOnce(_Events):
    """An event is done when it is made."""

    caught_by = "test_query_while_pending"

    def answered(self, event: Event) -> Event:
        return _Answering(event, queried=lambda e: True)


class QueryInNumbers(_Events):
    """query() is the driver's status: 0 when done."""

    caught_by = "test_query_while_pending"

    def answered(self, event: Event) -> Event:
        return _Answering(event, queried=lambda e: 0 if e.query() else 1)


class NeverDone(_Events):
    """query() is True only once somebody has waited."""

    caught_by = "test_query_while_pending"

    def answered(self, event: Event) -> Event:
        return _Answering(event, queried=lambda e: False)


class DoneOnce(_Events):
    """query() is True the first time alone: the flag is cleared when it is read."""

    caught_by = "test_an_event_that_is_done_stays_done"

    def answered(self, event: Event) -> Event:
        seen: list[bool] = []

        def ask(e: Event) -> bool:
            return e.query() and not seen

        def wait(e: Event, timeout: float | None) -> bool:
            done = e.synchronize(timeout)
            seen.append(done)
            return done

        return _Answering(event, queried=ask, waited=wait)


class TheDevicesLastEvent(_Events):
    """An event is done when all that is queued is: it has no number of its own."""

    caught_by = "test_an_event_that_is_done_stays_done"

    def answered(self, event: Event) -> Event:
        return _Answering(event, queried=lambda e: not self._instances[0].queue._pending and e.query())


class EventTimeoutsLie(Correct):
    """An event that was recorded says False whatever happened, when it is waited for with a timeout."""

    caught_by = "test_recorded_events_keep_their_timeout"

    def record_event(self, index: int, stream: Stream | None) -> Any:
        event = super().record_event(index, stream)
        return _Answering(event, waited=lambda e, timeout: e.synchronize(timeout) and timeout is None)


class EventQueryIsNone(Correct):
    """An event that was recorded says nothing when it is asked."""

    caught_by = "test_recorded_events_keep_their_timeout"

    def record_event(self, index: int, stream: Stream | None) -> Any:
        return _Answering(super().record_event(index, stream), queried=lambda e: None if e.query() else False)


class EventsOfTheOtherQueue(Correct):
    """Events that are recorded on stream None come after nothing."""

    caught_by = "test_events_of_the_in_order_queue"

    def record_event(self, index: int, stream: Stream | None) -> Task:
        return super().record_event(index, stream or self.create_stream(index))


class EventsOfStreamNone(Correct):
    """Events are recorded on stream None, whatever stream is named."""

    caught_by = "test_events_are_of_the_stream_they_are_recorded_on"

    def record_event(self, index: int, stream: Stream | None) -> Task:
        return super().record_event(index, None)


class ElapsedInSeconds(Correct):
    """elapsed_ms is in seconds."""

    caught_by = "test_elapsed_ms_is_in_milliseconds"

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        found = super().elapsed_ms(start, end)
        return found and found / 1000


class ElapsedInMicroseconds(Correct):
    """elapsed_ms is in microseconds."""

    caught_by = "test_elapsed_ms_is_in_milliseconds"

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        found = super().elapsed_ms(start, end)
        return found and found * 1000


class ElapsedHasNoSign(Correct):
    """elapsed_ms between events in reverse is positive."""

    caught_by = "test_elapsed_ms_is_in_milliseconds"

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        found = super().elapsed_ms(start, end)
        return found and abs(found)


class NoneIsNoSource(Correct):
    """sync_stream_from_to does nothing from stream None."""

    caught_by = "test_sync_stream_from_to_and_none"

    def sync_stream_from_to(self, index: int, source: Stream | None, target: Stream | None) -> None:
        if source is not None:
            super().sync_stream_from_to(index, source, target)


class NoneIsNoTarget(Correct):
    """sync_stream_from_to does nothing for stream None."""

    caught_by = "test_sync_stream_from_to_and_none"

    def sync_stream_from_to(self, index: int, source: Stream | None, target: Stream | None) -> None:
        if target is not None:
            super().sync_stream_from_to(index, source, target)


class NoneDoesNotWait(Correct):
    """wait_event does nothing for stream None."""

    caught_by = "test_wait_event_and_none"

    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None:
        if stream is not None:
            super().wait_event(index, stream, event)


class CopiesAreNotWaitedFor(Correct):
    """wait_event takes events of record_event alone, and passes over others."""

    caught_by = "test_an_event_of_a_copy_can_be_waited_for"

    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None:
        if isinstance(event, Task) and event.subject == "an event":
            super().wait_event(index, stream, event)


class SyncOfNoneReturns(Correct):
    """stream_sync of stream None returns at once."""

    caught_by = "test_stream_sync_waits"

    def stream_sync(self, index: int, stream: Stream | None) -> None:
        if stream is not None:
            super().stream_sync(index, stream)


class FreeStreamDrops(Correct):
    """free_stream drops what is queued."""

    caught_by = "test_free_stream_drops_nothing"

    def free_stream(self, stream: Stream) -> None:
        queue = self._instances[stream.device.index].queue
        if (last := queue.last(stream.handle)) is not None:
            last.action = None
        super().free_stream(stream)


class SetStreamMovesNone(Correct):
    """After set_stream, work on stream None goes to the stream that was set."""

    caught_by = "test_set_stream_changes_no_other_call"

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        return super().copy_data_from_to(src, dst, nbytes, stream or self.get_stream(0), keep_alive)


class StreamsOfOneHandle(Correct):
    """Every stream has the same handle: who frees one frees all."""

    caught_by = "test_streams_are_distinguished"
    only: Stream | None = None

    def create_stream(self, index: int) -> Stream:
        self.only = self.only or super().create_stream(index)
        return self.only


class TimesWhatIsPending(Correct):
    """elapsed_ms of events that are pending is 0."""

    caught_by = "test_elapsed_ms_while_pending"

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        return super().elapsed_ms(start, end) or 0.0


class WaitsForEventsInTheHost(Correct):
    """wait_event waits for the event."""

    caught_by = "test_waits_are_queued"

    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None:
        event.synchronize(None)


class WaitsForStreamsInTheHost(Correct):
    """sync_stream_from_to waits for the source."""

    caught_by = "test_waits_are_queued"

    def sync_stream_from_to(self, index: int, source: Stream | None, target: Stream | None) -> None:
        self.stream_sync(index, source)


class _NeverDone:
    """What a copy of no bytes is waited for by."""

    def query(self) -> bool:
        return False

    def synchronize(self, timeout: float | None = None) -> bool:
        return timeout is None


class NoBytesAreNeverDone(Correct):
    """The event of a copy of 0 bytes is never done."""

    caught_by = "test_copies_of_no_bytes"

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        return super().copy_data_from_to(src, dst, nbytes, stream, keep_alive) if nbytes else _NeverDone()


class OneStreamForNewWork(Correct):
    """Copies on a stream go to the one that was created last."""

    caught_by = "test_stream_sync_with_others"
    last: Stream | None = None

    def create_stream(self, index: int) -> Stream:
        self.last = super().create_stream(index)
        return self.last

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        queue = self.last if stream is not None and self.last is not None and self.last.handle.alive else stream
        return super().copy_data_from_to(src, dst, nbytes, queue, keep_alive)


class OrdersTwoStreamsOnce(Correct):
    """Two streams are ordered the first time that it is asked for."""

    caught_by = "test_sync_stream_from_to_again"

    def __init__(self) -> None:
        super().__init__()
        self.ordered: set[tuple[int, int]] = set()

    def sync_stream_from_to(self, index: int, source: Stream | None, target: Stream | None) -> None:
        pair = id(source and source.handle), id(target and target.handle)
        if pair not in self.ordered:
            self.ordered.add(pair)
            super().sync_stream_from_to(index, source, target)


class WaitsForPendingEventsAlone(Correct):
    """wait_event of an event that is done raises."""

    caught_by = "test_wait_event_that_is_done"

    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None:
        if event.query():
            raise DeviceError("mutant: the event is not pending")
        super().wait_event(index, stream, event)


class HostCopiesAtOnce(Correct):
    """Copies from the host are done when they are asked for, before what is queued."""

    caught_by = "test_copies_with_the_host_are_in_order"

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        if src.space.device.api is self or dst.space.device.api is not self:
            return super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)
        ctypes.memmove(self._address(dst, "a copy"), self._address(src, "a copy"), nbytes)
        return None
