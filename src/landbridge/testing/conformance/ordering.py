"""Tests of the order between streams where one is the in-order queue, is freed, or is a thread's own."""

from __future__ import annotations

from landbridge.device.api import Region, Space, Stream
from landbridge.device.protocols import Events, Streams
from landbridge.testing.conformance.base import ConformanceCase, expect, pattern

_BYTES = 512
_ROUNDS = 8  # repeated, as a wrong order may be right by chance


class OrderConformance(ConformanceCase):
    """Tests that stream None is ordered as created streams are."""

    def test_sync_stream_from_to_and_none(self) -> None:
        """sync_stream_from_to takes stream None at either end."""
        streams, index = self.ability(Streams), self.device.index
        for seed in range(_ROUNDS):
            with self.streams(1) as (other,):
                for first, second in ((None, other), (other, None)):
                    spaces = self._filled_spaces(seed)
                    self.copy(Region(spaces[0]), Region(spaces[1]), _BYTES, first)
                    streams.sync_stream_from_to(index, first, second)
                    self.wait(self.copy(Region(spaces[1]), Region(spaces[2]), _BYTES, second))
                    streams.stream_sync(index, second)
                    self._expect_copied(
                        spaces[2], seed, f"a stream did not wait for {'None' if first is None else 'another'}"
                    )

    def test_sync_stream_from_to_again(self) -> None:
        """sync_stream_from_to: each call orders what is queued by then, however often these streams were ordered."""
        streams, index = self.ability(Streams), self.device.index
        first, second = streams.create_stream(index), streams.create_stream(index)
        for seed in range(_ROUNDS):
            for source, target in ((first, second), (second, first)):
                spaces = self._filled_spaces(seed)
                self.copy(Region(spaces[0]), Region(spaces[1]), _BYTES, source)
                streams.sync_stream_from_to(index, source, target)
                self.wait(self.copy(Region(spaces[1]), Region(spaces[2]), _BYTES, target))
                self._expect_copied(spaces[2], seed, "streams that were ordered before were not ordered again")
        for stream in (first, second):
            streams.free_stream(stream)

    def test_stream_sync_with_others(self) -> None:
        """Work is on the stream that it was queued on, whichever were created since: stream_sync of it waits for it."""
        streams, index = self.ability(Streams), self.device.index
        for seed in range(_ROUNDS):
            several = [streams.create_stream(index) for _ in range(3)]
            for number, stream in enumerate(several):
                source, middle, target = self._filled_spaces(seed)[0], self.alloc(_BYTES), self.host(b"\xee" * _BYTES)
                if not self.can_copy_host(source):
                    self.skip("copies neither from nor to host memory")
                self.copy(Region(source), Region(middle), _BYTES, stream)
                self.copy(Region(middle), Region(target), _BYTES, stream)
                streams.stream_sync(index, stream)
                arrived = self.host_bytes(target, _BYTES) == pattern(_BYTES, seed)
                expect(arrived, f"stream_sync of stream {number} of three returned before its copies were done")
            for stream in several:
                streams.free_stream(stream)

    def test_wait_event_and_none(self) -> None:
        """wait_event takes stream None, and events that were recorded on it."""
        streams, events, index = self.ability(Streams), self.ability(Events), self.device.index
        for seed in range(_ROUNDS):
            other = streams.create_stream(index)
            for first, second in ((None, other), (other, None)):
                spaces = self._filled_spaces(seed)
                self.copy(Region(spaces[0]), Region(spaces[1]), _BYTES, first)
                events.wait_event(index, second, events.record_event(index, first))
                self.wait(self.copy(Region(spaces[1]), Region(spaces[2]), _BYTES, second))
                self._expect_copied(spaces[2], seed, "a stream did not wait for an event")
            streams.free_stream(other)

    def test_wait_event_that_is_done(self) -> None:
        """wait_event takes an event that is done, and orders nothing then."""
        events, index = self.ability(Events), self.device.index
        self.ability(Streams)
        with self.streams(2) as (stream, another):
            spaces = self._filled_spaces(1)
            event = events.record_event(index, stream)
            self.wait(event)
            for other in (None, another):
                events.wait_event(index, other, event)
                self.wait(self.copy(Region(spaces[0]), Region(spaces[1]), _BYTES, other))
                self._expect_copied(spaces[1], 1, "a copy after an event that was done did not happen")

    def test_copies_with_the_host_are_in_order(self) -> None:
        """Copies from and to the host keep their order: what was queued before reads the old bytes, and is read."""
        for seed in range(_ROUNDS):
            spaces = self._filled_spaces(seed)
            if not self.can_copy_host(spaces[0]):
                self.skip("copies neither from nor to host memory")
            fresh, seen = self.host(pattern(_BYTES, seed + 50)), self.host(b"\xee" * _BYTES)
            first = self.copy(Region(spaces[0]), Region(spaces[1]), _BYTES)
            second = self.copy(Region(fresh), Region(spaces[0]), _BYTES)
            third = self.copy(Region(spaces[1]), Region(seen), _BYTES)
            for event in (first, second, third):
                self.wait(event)
            expect(
                self.host_bytes(seen, _BYTES) == pattern(_BYTES, seed), "a copy with the host did not keep its order"
            )
            self._expect_copied(spaces[0], seed + 50, "a copy from the host did not keep its order")

    def test_an_event_of_a_copy_can_be_waited_for(self) -> None:
        """wait_event takes the Event that a copy returned."""
        streams, events, index = self.ability(Streams), self.ability(Events), self.device.index
        for seed in range(_ROUNDS):
            other, spaces = streams.create_stream(index), self._filled_spaces(seed)
            event = self.copy(Region(spaces[0]), Region(spaces[1]), _BYTES)
            if event is not None:
                events.wait_event(index, other, event)
            self.wait(self.copy(Region(spaces[1]), Region(spaces[2]), _BYTES, other))
            self._expect_copied(spaces[2], seed, "a stream did not wait for the event of a copy")
            streams.free_stream(other)

    def test_stream_sync_waits(self) -> None:
        """stream_sync returns when everything queued on that stream is done: on stream None too."""
        streams, index = self.ability(Streams), self.device.index
        for seed in range(_ROUNDS):
            with self.streams(1) as (created,):
                for stream in (None, created):
                    source, target = self._filled_spaces(seed)[0], self.host(b"\xee" * _BYTES)
                    if not self.can_copy_host(source):
                        self.skip("copies neither from nor to host memory")
                    middle = self.alloc(_BYTES)
                    self.copy(Region(source), Region(middle), _BYTES, stream)
                    self.copy(Region(middle), Region(target), _BYTES, stream)
                    streams.stream_sync(index, stream)
                    arrived = self.host_bytes(target, _BYTES) == pattern(_BYTES, seed)
                    waited = "None" if stream is None else "a stream"
                    expect(arrived, f"stream_sync of {waited} returned before it was done")

    def test_free_stream_drops_nothing(self) -> None:
        """free_stream: what is queued on it is still done."""
        streams, index = self.ability(Streams), self.device.index
        for seed in range(_ROUNDS):
            stream, spaces = streams.create_stream(index), self._filled_spaces(seed)
            event = self.copy(Region(spaces[0]), Region(spaces[1]), _BYTES, stream)
            streams.free_stream(stream)
            self.wait(event)
            self._expect_copied(spaces[1], seed, "a copy was dropped with the stream it was queued on")

    def test_set_stream_changes_no_other_call(self) -> None:
        """set_stream tells the driver's libraries; stream None stays the one in-order queue."""
        streams, index = self.ability(Streams), self.device.index
        for seed in range(_ROUNDS):
            stream, spaces = streams.create_stream(index), self._filled_spaces(seed)
            self.copy(Region(spaces[0]), Region(spaces[1]), _BYTES)
            streams.set_stream(index, stream)
            try:
                event = self.copy(Region(spaces[1]), Region(spaces[2]), _BYTES)
            finally:
                streams.set_stream(index, None)
            self.wait(event)
            self._expect_copied(spaces[2], seed, "with set_stream, a copy on stream None went to another queue")
            streams.free_stream(stream)

    def test_streams_are_distinguished(self) -> None:
        """create_stream: each is a stream of its own, of this device."""
        streams, index = self.ability(Streams), self.device.index
        first, second = streams.create_stream(index), streams.create_stream(index)
        for stream in (first, second):
            expect(isinstance(stream, Stream), f"create_stream returned a {type(stream).__name__}")
            expect(stream.device == self.device, f"a stream of {self.device} says that it is of {stream.device}")
        streams.free_stream(first)
        spaces = self._filled_spaces(1)
        self.wait(self.copy(Region(spaces[0]), Region(spaces[1]), _BYTES, second))
        self._expect_copied(spaces[1], 1, "a stream is of no use after another was freed")
        streams.free_stream(second)

    def _filled_spaces(self, seed: int) -> list[Space]:
        spaces = [self.alloc(_BYTES) for _ in range(3)]
        self.write(spaces[0], pattern(_BYTES, seed))
        for space in spaces[1:]:
            self.write(space, b"\xee" * _BYTES)
        return spaces

    def _expect_copied(self, space: Space, seed: int, otherwise: str) -> None:
        expect(self.read(space, _BYTES) == pattern(_BYTES, seed), otherwise)
