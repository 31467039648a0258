"""Tests of work that is recorded once and replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise

from landbridge.device.api import Event, Region, Space, Stream
from landbridge.device.protocols import Recording, Streams
from landbridge.testing.conformance.base import expect, pattern
from landbridge.testing.conformance.kernels import NBYTES, KernelCase, float32_bytes, minus

_BYTES = 512
_ROUNDS = 8  # repeated, as a wrong order may be right by chance


class RecordingCase(KernelCase):
    """A test that records work."""

    def record_work(self, work: Callable[[Stream | None], object]) -> object:
        """Records what ``work`` queues on a stream; returns the recording."""
        recorder, streams, index = self.ability(Recording), self.device.capability(Streams), self.device.index
        stream = None if streams is None else streams.create_stream(index)
        recorder.begin_record(index, stream)
        try:
            work(stream)
        finally:
            recording = recorder.end_record(index, stream)
        if streams is not None and stream is not None:
            streams.free_stream(stream)
        return recording

    def replay_work(
        self, recording: object, args: Mapping[int, Region] | None = None, stream: Stream | None = None
    ) -> Event | None:
        return self.ability(Recording).replay(recording, args or {}, stream)


class RecordingConformance(RecordingCase):
    """Tests ``begin_record``, ``end_record`` and ``replay``."""

    def test_what_is_recorded_is_not_done(self) -> None:
        """begin_record: work on that stream is noted, and not done."""
        self.ability(Recording)
        source, target = self.operand(pattern(_BYTES, 1)), self.operand(pattern(_BYTES, 2))
        recording = self.record_work(lambda s: self.copy(Region(source), Region(target), _BYTES, s))
        expect(self.read(target, _BYTES) == pattern(_BYTES, 2), "a copy was done while it was recorded")
        self.write(source, pattern(_BYTES, 3))
        self.wait(self.replay_work(recording))
        expect(self.read(target, _BYTES) == pattern(_BYTES, 3), "a replay does not copy what is there by then")

    def test_only_one_stream_is_recorded(self) -> None:
        """begin_record(index, stream): work on other streams is done meanwhile."""
        recorder, index = self.ability(Recording), self.device.index
        stream, other = self.new_stream(), self.new_stream()
        spaces = [self.operand(pattern(_BYTES, seed)) for seed in range(6)]
        recorder.begin_record(index, stream)
        try:
            self.copy(Region(spaces[0]), Region(spaces[1]), _BYTES, stream)
            done = self.copy(Region(spaces[2]), Region(spaces[3]), _BYTES)
            also = self.copy(Region(spaces[4]), Region(spaces[5]), _BYTES, other)
        finally:
            recording = recorder.end_record(index, stream)
        self.wait(done)
        self.wait(also)
        expect(self.read(spaces[3], _BYTES) == pattern(_BYTES, 2), "a copy on stream None was recorded, too")
        expect(self.read(spaces[5], _BYTES) == pattern(_BYTES, 4), "a copy on another stream was recorded, too")
        for number in (3, 5):
            self.write(spaces[number], pattern(_BYTES, 9))
        self.wait(self.replay_work(recording))
        left = self.read(spaces[3], _BYTES) == self.read(spaces[5], _BYTES) == pattern(_BYTES, 9)
        expect(left, "a replay does what was queued on other streams")

    def test_replay(self) -> None:
        """replay: all that was noted, in order, each time; it is done when its Event completes, or on return."""
        self.ability(Recording)
        spaces = [self.operand(bytes(_BYTES)) for _ in range(5)]

        def chain(stream: Stream | None) -> None:
            for source, target in pairwise(spaces):
                self.copy(Region(source), Region(target), _BYTES, stream)

        recording = self.record_work(chain)
        for seed in range(_ROUNDS):
            self.write(spaces[0], pattern(_BYTES, seed))
            seen = self.operand(bytes(_BYTES))
            self.wait(self.replay_work(recording))
            self._copy_concurrently(spaces[-1], seen)
            expect(self.read(seen, _BYTES) == pattern(_BYTES, seed), "a replay was not done, or not in order")

    def test_two_recordings_at_once(self) -> None:
        """begin_record: streams that are recorded at the same time have a recording each."""
        recorder, index = self.ability(Recording), self.device.index
        both = [self.new_stream() for _ in range(2)]
        spaces = [self.operand(pattern(_BYTES, seed)) for seed in range(4)]
        for stream in both:
            recorder.begin_record(index, stream)
        try:
            for number, stream in enumerate(both):
                self.copy(Region(spaces[2 * number]), Region(spaces[2 * number + 1]), _BYTES, stream)
        finally:
            recordings = [recorder.end_record(index, stream) for stream in both]
        self.wait(self.replay_work(recordings[1]))
        found = [self.read(spaces[number], _BYTES) for number in (1, 3)]
        expect(found[0] == pattern(_BYTES, 1), "a recording has what was noted on another stream")
        expect(found[1] == pattern(_BYTES, 2), "a recording has not what was noted while another one was made")
        self.wait(self.replay_work(recordings[0]))
        expect(self.read(spaces[1], _BYTES) == pattern(_BYTES, 0), "a recording has not what was noted on its stream")

    def test_replay_is_done_once(self) -> None:
        """replay: what was noted happens once each time."""
        self.ability(Recording)
        first, second, between = (self.operand(pattern(_BYTES, seed)) for seed in range(3))

        def swap(stream: Stream | None) -> None:
            for source, target in ((first, between), (second, first), (between, second)):
                self.copy(Region(source), Region(target), _BYTES, stream)

        recording = self.record_work(swap)
        for iteration in range(3):
            self.wait(self.replay_work(recording))
            found = self.read(first, _BYTES), self.read(second, _BYTES)
            wanted = pattern(_BYTES, (iteration + 1) % 2), pattern(_BYTES, iteration % 2)
            expect(
                found == wanted,
                f"a recording that swaps two spaces was replayed {iteration + 1} times; they hold others",
            )

    def test_replay_comes_in_order(self) -> None:
        """replay(stream): after what is on that stream, and before what follows."""
        streams, index = self.ability(Streams), self.device.index
        self.ability(Recording)
        first, second, third, last = (self.operand(bytes(_BYTES)) for _ in range(4))
        recording = self.record_work(lambda s: self.copy(Region(second), Region(third), _BYTES, s))
        created = self.new_stream()
        for seed in range(_ROUNDS):
            for stream, content in ((None, 2 * seed), (created, 2 * seed + 1)):
                self.write(first, pattern(_BYTES, content))
                self.copy(Region(first), Region(second), _BYTES, stream)
                self.replay_work(recording, stream=stream)
                self.wait(self.copy(Region(third), Region(last), _BYTES, stream))
                streams.stream_sync(index, stream)
                expect(self.read(last, _BYTES) == pattern(_BYTES, content), "a replay was not in its stream's order")
                self.write(last, bytes(_BYTES))

    def test_positions(self) -> None:
        """Positions number the regions that the recorded work uses in the order of their first use."""
        self.ability(Recording)
        unit = max(64, self.device.memory_kind().offset_alignment)
        size = 3 * unit + 128
        spaces = [self.operand(pattern(size, seed)) for seed in range(3)]
        regions = [Region(space, unit) for space in spaces]

        def work(stream: Stream | None) -> None:
            self.copy(regions[0], regions[1], 128, stream)
            self.copy(regions[1], regions[2], 128, stream)

        recording = self.record_work(work)
        for position in range(3):
            other = self.operand(pattern(size, 40 + position))
            for seed, space in enumerate(spaces):
                self.write(space, pattern(size, seed))
            self.wait(self.replay_work(recording, {position: Region(other, 3 * unit)}))
            seeds, starts, now = [0, 1, 2], [unit] * 3, spaces.copy()
            seeds[position], starts[position], now[position] = 40 + position, 3 * unit, other
            moved = pattern(size, seeds[0])[starts[0] : starts[0] + 128]
            for number in (1, 2):
                self.expect_part(self.read(now[number], size), seeds[number], starts[number], moved)
            self.wait(self.replay_work(recording, {position: regions[position]}))
        ends = [self.operand(pattern(size, 50 + end)) for end in range(2)]
        self.wait(self.replay_work(recording, {0: Region(ends[0], unit), 2: Region(ends[1], unit)}))
        moved = pattern(size, 50)[unit : unit + 128]
        self.expect_part(self.read(ends[1], size), 51, unit, moved)
        if (large_offset := self.large_offset()) is not None:
            others = [Region(self.alloc(large_offset + 128), large_offset) for _ in range(3)]
            for seed, region in enumerate(others):
                self.write(region.space, pattern(128, 60 + seed), large_offset)
            self.wait(self.replay_work(recording, dict(enumerate(others))))
            expect(
                self.read(others[2].space, 128, large_offset) == pattern(128, 60),
                f"a replay at offset {large_offset} is wrong",
            )

    def test_rebound_regions_stay(self) -> None:
        """replay(args): the regions are bound to their positions from now on."""
        self.ability(Recording)
        source, target, other = (self.operand(pattern(_BYTES, seed)) for seed in range(3))
        recording = self.record_work(lambda s: self.copy(Region(source), Region(target), _BYTES, s))
        self.wait(self.replay_work(recording, {1: Region(other)}))
        self.write(target, pattern(_BYTES, 7))
        self.write(other, pattern(_BYTES, 8))
        self.wait(self.replay_work(recording))
        expect(self.read(other, _BYTES) == pattern(_BYTES, 0), "the next replay does not write what was bound before")
        expect(self.read(target, _BYTES) == pattern(_BYTES, 7), "a replay writes what was bound at first")

    def test_replays_are_queued_as_they_are_bound(self) -> None:
        """replay: binding other regions changes no replay that is queued already."""
        self.ability(Recording)
        for seed in range(_ROUNDS):
            source = self.operand(pattern(_BYTES, seed))
            targets = [self.operand(bytes(_BYTES)) for _ in range(4)]
            recording = self.record_work(partial(self.copy, Region(source), Region(targets[0]), _BYTES))
            events = [self.replay_work(recording, {1: Region(target)}) for target in targets]
            for event in events:
                self.wait(event)
            done = all(self.read(target, _BYTES) == pattern(_BYTES, seed) for target in targets)
            expect(done, "a replay that was queued wrote what was bound after it")

    def test_recorded_launches(self) -> None:
        """Launches are recorded as copies are, and replayed with other regions."""
        self.ability(Recording)
        kernel = self.kernel()
        a, b, y, other = (self.operand(float32_bytes(seed)) for seed in (1, 2, 3, 4))
        recording = self.record_work(lambda s: self.launch(kernel, Region(a), Region(b), Region(y), s))
        expect(self.read(y, NBYTES) == float32_bytes(3), "a launch was done while it was recorded")
        self.wait(self.replay_work(recording))
        expect(self.read(y, NBYTES) == minus(float32_bytes(1), float32_bytes(2)), "a replay did not launch")
        args = [number for launch in kernel.sequence.launches for number in launch.args]
        position = list(dict.fromkeys(args)).index(2)
        self.write(y, float32_bytes(5))
        self.wait(self.replay_work(recording, {position: Region(other)}))
        expect(
            self.read(other, NBYTES) == minus(float32_bytes(1), float32_bytes(2)),
            "a launch was not bound to another region",
        )
        expect(self.read(y, NBYTES) == float32_bytes(5), "a launch wrote what was bound before")

    def _copy_concurrently(self, source: Space, target: Space) -> None:
        """Copies on another stream than None, where there is one; it does not wait for the copy."""
        streams = self.device.capability(Streams)
        stream = None if streams is None else streams.create_stream(self.device.index)
        self.wait(self.copy(Region(source), Region(target), _BYTES, stream))
        if streams is not None and stream is not None:
            streams.free_stream(stream)
