"""Tests of events and time, with the device kept busy so that queued work is still pending."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from functools import partial

from landbridge.device.api import Event, Region, Space, Stream
from landbridge.device.protocols import Events, Streams
from landbridge.testing.conformance.base import LONGER, ConformanceCase, expect, pattern

_BYTES = 512
_SHORT = 0.02  # seconds
_ROUNDS = 4
_OTHERS = (64, 256)  # events: as many as one or two bytes of a mask have, and as a byte counts


class TimingConformance(ConformanceCase):
    """Tests ``query``, ``synchronize`` and ``elapsed_ms`` while work is pending, and after."""

    def test_synchronize_keeps_its_timeout(self) -> None:
        """synchronize(timeout) waits at most so many seconds, and returns whether everything before has completed."""
        for timeout in (0.0, _SHORT):
            for nbytes in LONGER:
                with self.freed_after():
                    if not self._waits_at_most(timeout, nbytes):
                        break  # else it was over too soon to say much

    def _waits_at_most(self, timeout: float, nbytes: int) -> bool:
        """Returns what synchronize(timeout) answers while copies of ``nbytes`` are queued; checks how long it waits."""
        source, target, event = self._pending_copy(nbytes=nbytes)
        begun = time.monotonic()
        done = event.synchronize(timeout)
        waited = time.monotonic() - begun
        expect(isinstance(done, bool), f"synchronize({timeout}) returned {done!r}, not a bool")
        expect(waited < self.patience / 2, f"synchronize({timeout}) waited {waited:.2f} seconds")
        expect(done or waited >= timeout / 2, f"synchronize({timeout}) gave up after {waited:.6f} seconds")
        if done:
            self._expect_landed(source, target, 1)
        self._expect_true_after_waiting(event, source, target)
        return done

    def test_synchronize_waits_as_long_as_it_takes(self) -> None:
        """synchronize(timeout) is True as soon as everything before has completed, and not before."""
        for timeout in (self.patience, None):
            source, target, event = self._pending_copy()
            expect(event.synchronize(timeout) is True, f"synchronize({timeout}) of a short copy is not True")
            self._expect_landed(source, target, 1)
            self._expect_true_after_waiting(event, source, target)

    def test_query_while_pending(self) -> None:
        """query() is a bool, at once: False while work before it is pending, True from its completion on."""
        source, target, event = self._pending_copy()
        deadline = time.monotonic() + self.patience
        while True:
            begun = time.monotonic()
            done = event.query()
            expect(isinstance(done, bool), f"query() returned {done!r}, not a bool")
            expect(time.monotonic() - begun < self.patience / 2, "query() waited")
            if done:
                break
            expect(time.monotonic() < deadline, f"query() is still False after {self.patience} seconds")
        self._expect_landed(source, target, 1)
        self._expect_true_after_waiting(event, source, target)

    def test_recorded_events_keep_their_timeout(self) -> None:
        """An event that was recorded waits at most so many seconds; what it returns is what is so."""
        events = self.ability(Events)
        source, target, copied = self._pending_copy()
        event = events.record_event(self.device.index, None)
        begun = time.monotonic()
        done = event.synchronize(_SHORT)
        waited = time.monotonic() - begun
        expect(isinstance(done, bool), f"synchronize returned {done!r}, not a bool")
        expect(waited < self.patience / 2, f"synchronize({_SHORT}) of an event waited {waited:.2f} seconds")
        expect(done or waited >= _SHORT / 2, f"synchronize({_SHORT}) of an event gave up after {waited:.6f} seconds")
        expect(event.synchronize(self.patience) is True, "synchronize of an event after a short copy is not True")
        expect(event.query() is True, "query() of an event is not True after synchronize()")
        self._expect_true_after_waiting(copied, source, target)

    def test_events_of_the_in_order_queue(self) -> None:
        """record_event(index, None) comes after all that stream None has now: with streams or without."""
        events = self.ability(Events)
        for seed in range(4):
            source, target, _ = self._pending_copy(seed)
            event = events.record_event(self.device.index, None)
            events.wait_event(self.device.index, None, event)  # the stream's own order is the only wait here
            expect(event.synchronize(None) is True, "synchronize of an event without a timeout is not True")
            self._expect_landed(source, target, seed)

    def test_events_are_of_the_stream_they_are_recorded_on(self) -> None:
        """record_event(index, stream) comes after all that is on that stream, whatever other streams do."""
        events, stream = self.ability(Events), self.new_stream()
        for seed in range(4):
            source, target, _ = self._pending_copy(seed, stream)
            event = events.record_event(self.device.index, stream)
            expect(event.synchronize(None) is True, "synchronize of an event without a timeout is not True")
            self._expect_landed(source, target, seed)

    def test_an_event_that_is_done_stays_done(self) -> None:
        """Once complete, an event is complete for good: with a timeout of 0 too, whatever is queued after it."""
        source, target, event = self._pending_copy()
        event.synchronize(None)
        last = self.busy()
        expect(event.query() is True, "query() of an event that was complete is not True any more")
        expect(event.synchronize(0.0) is True, "synchronize(0) of an event that was complete is not True")
        self._expect_landed(source, target, 1)
        self.wait(last)

    def test_elapsed_ms_is_in_milliseconds(self) -> None:
        """elapsed_ms: milliseconds, of the device's clock; those between events in reverse are negative, or None."""
        events, index = self.ability(Events), self.device.index
        found: list[tuple[float, float]] = []
        for _ in range(3):
            self.wait(self.copy(Region(self.alloc(8)), Region(self.alloc(8)), 8))
            begun = time.perf_counter()
            start = events.record_event(index, None)
            self.busy()
            end = events.record_event(index, None)
            end.synchronize(None)
            wall = (time.perf_counter() - begun) * 1e3
            elapsed = events.elapsed_ms(start, end)
            if elapsed is None:
                self.skip("has no clock")
            expect(isinstance(elapsed, float), f"elapsed_ms returned {elapsed!r}, not a float")
            back = events.elapsed_ms(end, start)
            expect(back is None or back <= 0, f"elapsed_ms is {elapsed} ms, and {back} the other way round")
            found.append((elapsed, wall))
        # Finds a clock that is wrong by a factor of a thousand, but tolerates another oscillator or a busy machine.
        legal = any(wall / 200 <= elapsed <= wall * 1.5 + 1 for elapsed, wall in found)
        expect(legal, f"elapsed_ms says {found[0][0]:.6f} ms of what took {found[0][1]:.3f} ms on the host")

    def test_elapsed_ms_while_pending(self) -> None:
        """elapsed_ms: None while one of the events is pending."""
        events, index = self.ability(Events), self.device.index
        for _ in range(_ROUNDS):
            start = events.record_event(index, None)
            self.busy()
            end = events.record_event(index, None)
            elapsed = events.elapsed_ms(start, end)
            pending = not end.query()
            end.synchronize(None)
            expect(not pending or elapsed is None, f"elapsed_ms was {elapsed} while the second event was pending")

    def test_waits_are_queued(self) -> None:
        """wait_event and sync_stream_from_to return at once: the device waits, not the host."""
        events, streams, index = self.ability(Events), self.ability(Streams), self.device.index
        stream = self.new_stream()

        def waited(wait: Callable[[], None], nbytes: int) -> float | None:
            """Returns the seconds that ``wait`` took, as a share of what the work took from then on."""
            work = self.pending(nbytes)
            if work is None:
                return None
            begun = time.perf_counter()
            wait()
            spent = time.perf_counter() - begun
            work.synchronize(None)
            return spent / (time.perf_counter() - begun)

        waits: dict[str, Callable[[], None]] = {
            "wait_event": lambda: events.wait_event(index, stream, events.record_event(index, None)),
            "sync_stream_from_to": lambda: streams.sync_stream_from_to(index, None, stream),
        }
        for name, wait in waits.items():
            self.expect_at_once(partial(waited, wait), name)

    def test_events_among_many(self) -> None:
        """An event is its own for as long as somebody has it, however many are made after it: 64, 256, pending or
        not."""
        events, index = self.ability(Events), self.device.index
        for others in _OTHERS:
            source, target, copied = self._pending_copy(others)
            event = events.record_event(index, None)
            later = [events.record_event(index, None) for _ in range(others)]
            subject = f"an event with {others} others after it"
            expect(event.synchronize(None) is True, f"synchronize() of {subject} is not True")
            self._expect_landed(source, target, others)
            expect(later[-1].synchronize(None) is True, f"synchronize() of the last of {others} events is not True")
            last = self.busy()
            later += [events.record_event(index, None) for _ in range(others)]
            done = copied.query() and event.query() and event.synchronize(0.0)
            expect(done is True, f"{subject} was complete, and is not when those are pending")
            self.wait(later[-1])
            expect(all(each.query() for each in later), f"of {2 * others} events some are not done after the last one")
            self.wait(last)

    def test_synchronize_of_no_time(self) -> None:
        """synchronize(0) returns at once, whatever is pending."""
        self.expect_at_once(partial(self._spent_in_a_look, False), "synchronize(0) of the event of a copy")
        if self.device.capability(Events) is not None:
            self.expect_at_once(partial(self._spent_in_a_look, True), "synchronize(0) of an event that was recorded")

    def _spent_in_a_look(self, recorded: bool, nbytes: int) -> float | None:
        """Returns the seconds that ``synchronize(0)`` takes, as a share of what its work takes from then on."""
        event = self.pending(nbytes)
        if event is None:
            return None
        if recorded:
            event = self.ability(Events).record_event(self.device.index, None)
        begun = time.perf_counter()
        event.synchronize(0.0)
        spent = time.perf_counter() - begun
        expect(event.synchronize(None) is True, "synchronize() of an event without a timeout is not True")
        return spent / (time.perf_counter() - begun)

    def _pending_copy(
        self, seed: int = 1, stream: Stream | None = None, nbytes: int = LONGER[0]
    ) -> tuple[Space, Space, Event]:
        """Queues a copy of pattern ``seed`` to host memory after others of ``nbytes``; skips the test where copies are
        done on return.
        """
        source = self.alloc(_BYTES)
        if not self.can_copy_host(source):
            self.skip("copies neither from nor to host memory")
        self.write(source, pattern(_BYTES, seed))
        for target in self._seen_at_once():
            self.busy(stream, nbytes)
            event = self.copy(Region(source), Region(target), _BYTES, stream)
            if event is not None:
                return source, target, event
            self._expect_landed(source, target, seed)
        return self.skip("does what it is given before it returns")

    def _seen_at_once(self) -> Iterator[Space]:
        """Yields memory in which a copy is visible without a call of the device: host memory, then its own coherent
        memory.
        """
        yield self.host(b"\xee" * _BYTES)
        for kind in self.device.memory_kinds.values():
            if kind.host_access == "read_write" and kind.ndim == 1 and kind.coherent:
                yield self.alloc(_BYTES, kind.scope)

    def _expect_true_after_waiting(self, event: Event, source: Space, target: Space) -> None:
        event.synchronize(None)
        self._expect_landed(source, target, 1)
        expect(event.query() is True, "query() is not True after synchronize()")
        expect(event.synchronize(0.0) is True, "synchronize(0) is not True after synchronize()")

    def _expect_landed(self, source: Space, target: Space, seed: int) -> None:
        arrived = ctypes.string_at(self.host_address(target), _BYTES) == pattern(_BYTES, seed)
        expect(arrived, "the event was complete before the copy it stands for, or one before it")
