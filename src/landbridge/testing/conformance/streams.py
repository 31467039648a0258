"""Tests of streams and events."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.device.api import Region, Space, Stream
from landbridge.device.protocols import Events, Streams
from landbridge.errors import LandbridgeError
from landbridge.memory.borrowed import host_device
from landbridge.testing.conformance.base import ConformanceCase, expect, expect_raises, pattern

_BYTES = 512
_ROUNDS = 8  # repeated, as a wrong order may be right by chance


class StreamConformance(ConformanceCase):
    """Tests queues besides the in-order one, and events in them."""

    def test_stream_order(self) -> None:
        """Copies are queued on a stream."""
        streams = self.ability(Streams)
        for round_ in range(_ROUNDS):
            stream = streams.create_stream(self.device.index)
            last = self._chain([stream] * 3, round_)
            streams.stream_sync(self.device.index, stream)
            self._expect_arrived(last, round_, "copies on one stream ran out of order, or stream_sync did not wait")
            streams.free_stream(stream)

    def test_sync_stream_from_to(self) -> None:
        """sync_stream_from_to: what is queued on the second from now on runs after what is on the first."""
        streams = self.ability(Streams)
        index = self.device.index
        for round_ in range(_ROUNDS):
            with self.streams(2) as (first, second):
                spaces = self._spaces_for_chain(round_)
                self.copy(Region(spaces[0]), Region(spaces[1]), _BYTES, first)
                streams.sync_stream_from_to(index, first, second)
                self.wait(self.copy(Region(spaces[1]), Region(spaces[2]), _BYTES, second))
                self._expect_arrived(spaces[2], round_, "the second stream did not wait for the first")

    def test_wait_event(self) -> None:
        """record_event, wait_event: a stream waits on an event of the other."""
        self.ability(Streams)
        events, index = self.ability(Events), self.device.index
        for round_ in range(_ROUNDS):
            with self.streams(2) as (first, second):
                spaces = self._spaces_for_chain(round_)
                self.copy(Region(spaces[0]), Region(spaces[1]), _BYTES, first)
                events.wait_event(index, second, events.record_event(index, first))
                self.wait(self.copy(Region(spaces[1]), Region(spaces[2]), _BYTES, second))
                self._expect_arrived(spaces[2], round_, "the second stream did not wait for the event")

    def test_record_event(self) -> None:
        """record_event: everything before the event has completed when it has."""
        self.ability(Streams)
        events = self.ability(Events)
        with self.streams(1) as (stream,):
            last = self._chain([stream] * 3, 1)
            event = events.record_event(self.device.index, stream)
            expect(event.synchronize(30.0) is True, "synchronize(30 s) of three small copies is not True")
            expect(event.query() is True, "query() of an event is not True after synchronize()")
            self._expect_arrived(last, 1, "an event completed before the copies that were queued before it")

    def test_elapsed_ms(self) -> None:
        """elapsed_ms (device clock or None)."""
        events = self.ability(Events)
        start = events.record_event(self.device.index, None)
        self._chain([None] * 3, 1)
        end = events.record_event(self.device.index, None)
        end.synchronize(None)
        elapsed = events.elapsed_ms(start, end)
        expect(elapsed is None or elapsed >= 0, f"elapsed_ms between two events in order is {elapsed}")

    def test_a_stream_belongs_to_one_device(self) -> None:
        """A stream belongs to one device."""
        self.ability(Streams)
        if self.device == host_device():
            self.skip("is the host, and there is no other device to take a stream from")
        foreign = Stream(host_device(), object())
        source, target = self.alloc(_BYTES), self.alloc(_BYTES)
        call = lambda: self.copy(Region(source), Region(target), _BYTES, foreign)  # noqa: E731
        expect_raises(LandbridgeError, call, "a copy on a stream of another device")

    def _spaces_for_chain(self, seed: int) -> list[Space]:
        spaces = [self.alloc(_BYTES) for _ in range(4)]
        self.write(spaces[0], pattern(_BYTES, seed))
        return spaces

    def _chain(self, streams: Sequence[Stream | None], seed: int) -> Space:
        """Queues copies that pass a pattern from space to space; returns the last one."""
        spaces = self._spaces_for_chain(seed)
        for i, stream in enumerate(streams):
            self.copy(Region(spaces[i]), Region(spaces[i + 1]), _BYTES, stream)
        return spaces[-1]

    def _expect_arrived(self, space: Space, seed: int, otherwise: str) -> None:
        expect(self.read(space, _BYTES) == pattern(_BYTES, seed), otherwise)
