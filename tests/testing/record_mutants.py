"""Mutants of recordings, of exported memory, of workspaces, and of instances beside each other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from landbridge.device.api import Device, Event, Region, Space, Stream
from landbridge.device.import_source import DmaBuf
from landbridge.testing.sim_board import BoardRecording
from tests.testing.mutants import Correct


class RecordsAndDoes(Correct):
    """What is recorded is done, too."""

    caught_by = "test_what_is_recorded_is_not_done"

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        event = super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)
        if event is None and src != dst:
            return super().copy_data_from_to(src, dst, nbytes, None, keep_alive)
        return event


class RecordsEveryStream(Correct):
    """While one stream is recorded, what others are given is noted too, and done never but by replays."""

    caught_by = "test_only_one_stream_is_recorded"

    def _recording(self, stream: Stream | None, *regions: Region) -> BoardRecording | None:
        return next(iter(self._recordings.values()), None)


class RecordsItsBytes(Correct):
    """A recording has the bytes that the sources held when it was made."""

    caught_by = "test_what_is_recorded_is_not_done"

    def end_record(self, index: int, stream: Stream | None) -> object:
        made: Any = super().end_record(index, stream)
        for number, region in enumerate(made.regions[:1]):
            retained = self.alloc_data_space(index, region.space.handle.data.nbytes, 1, "global", None)
            retained.handle.data[:] = region.space.handle.data
            made.regions[number] = replace(region, space=retained)
        return made


class _Replays(Correct):
    """Replays go through ``mutate``."""

    def replay(self, recording: object, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        return self.mutate(recording, args, stream)

    def mutate(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        return super().replay(recording, args, stream)


class ReplaysAreNone(_Replays):
    """replay returns None, and is done later."""

    caught_by = "test_replay"

    def mutate(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        super().mutate(recording, args, stream)
        return None


class ReplaysTheFirstCommandFirstTimeOnly(_Replays):
    """A recording is used up by its first replay."""

    caught_by = "test_replay"

    def mutate(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        event = super().mutate(recording, args, stream)
        recording.commands.clear()
        return event


class ReplaysInReverse(_Replays):
    """The last command is queued first."""

    caught_by = "test_replay"

    def mutate(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        recording.commands.reverse()
        event = super().mutate(recording, args, stream)
        recording.commands.reverse()
        return event


class ReplaysOnStreamNone(_Replays):
    """Replays are queued on stream None, whatever stream is named."""

    caught_by = "test_replay_comes_in_order"

    def mutate(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        return super().mutate(recording, args, None)


class PositionsInReverse(_Replays):
    """Positions number the regions by their last use."""

    caught_by = "test_positions"

    def mutate(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        last = len(recording.regions) - 1
        return super().mutate(recording, {last - position: region for position, region in args.items()}, stream)


class BindsWithoutOffsets(_Replays):
    """A region that is bound keeps the offset of the one before."""

    caught_by = "test_positions"

    def mutate(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        bound = {at: replace(region, byte_offset=recording.regions[at].byte_offset) for at, region in args.items()}
        return super().mutate(recording, bound, stream)


class BindsForOneReplay(_Replays):
    """After a replay the regions are those of the recording again."""

    caught_by = "test_rebound_regions_stay"

    def mutate(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        before = recording.regions.copy()
        event = super().mutate(recording, args, stream)
        recording.regions[:] = before
        return event


class BindsOneAtATime(_Replays):
    """Of several regions that are bound the first alone is."""

    caught_by = "test_positions"

    def mutate(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        return super().mutate(recording, dict(list(args.items())[:1]), stream)


class BindsAtSixteenBits(_Replays):
    """Of the offset of a region that is bound the low 16 bits count."""

    caught_by = "test_positions"

    def mutate(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        bound = {position: Region(r.space, r.byte_offset & 0xFFFF) for position, r in args.items()}
        return super().mutate(recording, bound, stream)


class BindsWhatIsQueued(_Replays):
    """Binding other regions changes the replays that are queued: they read the bindings when they are done."""

    caught_by = "test_replays_are_queued_as_they_are_bound"

    def mutate(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        index = recording.regions[0].space.device.index
        for position, region in args.items():
            recording.regions[position] = region

        def run() -> None:
            for subject, noted in recording.commands:
                values = recording.bound(noted)
                if subject == "copy":
                    source, target, nbytes = values
                    begin, end = target.byte_offset, target.byte_offset + nbytes
                    data = source.space.handle.data[source.byte_offset : source.byte_offset + nbytes]
                    target.space.handle.data[begin:end] = data

        return self._submit(index, stream, "a replay", run)


class ReplaysNoLaunches(_Replays):
    """Launches are left out of recordings."""

    caught_by = "test_recorded_launches"

    def mutate(self, recording: Any, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        recording.commands[:] = [command for command in recording.commands if command[0] == "copy"]
        return super().mutate(recording, args, stream)


class ExportsACopy(Correct):
    """export_fd gives the bytes as they are now."""

    caught_by = "test_export_fd"

    def export_fd(self, space: Space) -> int:
        file = os.memfd_create("copy")
        os.write(file, space.handle.data.tobytes())
        return file


class ExportsItsArena(Correct):
    """export_fd gives a file in which the space begins somewhere."""

    caught_by = "test_export_fd"

    def export_fd(self, space: Space) -> int:
        file = os.memfd_create("arena")
        os.write(file, bytes(64) + space.handle.data.tobytes())
        return file


class ExportsItsOwnDescriptor(Correct):
    """export_fd gives the device's own descriptor: who closes it closes it for all."""

    caught_by = "test_descriptors_are_the_callers"

    def export_fd(self, space: Space) -> int:
        os.close(super().export_fd(space))
        return int(space.handle.file)


class NamesAFileOfItsOwn(Correct):
    """import_source names a file with none of the bytes."""

    caught_by = "test_import_source"

    def import_source(self, space: Space) -> DmaBuf | None:
        source = super().import_source(space)
        if source is None:
            return None
        file = os.memfd_create("other")
        os.ftruncate(file, source.nbytes)
        return replace(source, fd=file)


class ReusesWhatIsExported(Correct):
    """A freed space is given to the next, whoever maps it."""

    caught_by = "test_exported_memory_outlives_its_space"
    freed: Space | None = None

    def alloc_shared_space(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        space, self.freed = self.freed, None
        return space or super().alloc_shared_space(index, nbytes, alignment, scope)

    def free_data_space(self, space: Space) -> None:
        if self.freed is None and hasattr(space.handle, "file") and space.handle.alive:
            self.freed = space
        else:
            super().free_data_space(space)


class OneSharedSpace(Correct):
    """Every shared space is the first one."""

    caught_by = "test_shared_spaces_are_spaces"
    only: Space | None = None

    def alloc_shared_space(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        space = super().alloc_shared_space(index, nbytes, alignment, scope)
        if self.only is not None:
            space.handle.data = self.only.handle.data
            space.handle.address = self.only.handle.address
        self.only = self.only or space
        return space


class OneWorkspace(Correct):
    """There is one workspace, which grows: who asks for another gets the same."""

    caught_by = "test_workspaces"
    only: Space | None = None

    def alloc_workspace(self, index: int, nbytes: int, stream: Stream | None) -> Space:
        space = super().alloc_workspace(index, nbytes, stream)
        if self.only is not None and self.only.handle.data.nbytes >= nbytes:
            space.handle.data = self.only.handle.data[:nbytes]
            space.handle.address = self.only.handle.address
        self.only = space
        return space


class WorkspacesAreShort(Correct):
    """A workspace has whole pages, rounded down."""

    caught_by = "test_workspaces"

    def alloc_workspace(self, index: int, nbytes: int, stream: Stream | None) -> Space:
        return super().alloc_workspace(index, nbytes // 4096 * 4096, stream)


class WorkspacesOfAnyScope(Correct):
    """Workspaces are of scope shared."""

    caught_by = "test_workspaces"

    def alloc_workspace(self, index: int, nbytes: int, stream: Stream | None) -> Space:
        return self.alloc_data_space(index, nbytes, 1, "shared", None)


class WorkspacesAnywhere(Correct):
    """A workspace begins 4 bytes after what is aligned."""

    caught_by = "test_workspace_alignment"

    def alloc_workspace(self, index: int, nbytes: int, stream: Stream | None) -> Space:
        space = super().alloc_workspace(index, nbytes + 4, stream)
        space.handle.address += 4
        return space


class WorkspacesStay(Correct):
    """A workspace is freed when the process ends."""

    caught_by = "test_workspaces_are_given_back"

    def free_workspace(self, space: Space) -> None:
        pass


class OneInstance(Correct):
    """Whatever index is asked, the memory is that of instance 0."""

    caught_by = "test_instances_have_memory_of_their_own"

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        return super().alloc_data_space(0, nbytes, alignment, scope, type_hint)


class InstancesOverlap(Correct):
    """Both instances begin at the same address: the n-th spaces of both are the same bytes."""

    caught_by = "test_instances_have_memory_of_their_own"

    def __init__(self) -> None:
        super().__init__()
        self.last: dict[int, Any] = {}

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        space = super().alloc_data_space(index, nbytes, alignment, scope, type_hint)
        other = self.last.get(1 - index)
        if other is not None and other.data.nbytes == space.handle.data.nbytes:
            space.handle.data, space.handle.address = other.data, other.address
        self.last[index] = space.handle
        return space


class NothingBetweenInstances(Correct):
    """Copies between instances are taken, and do nothing."""

    caught_by = "test_copies_between_instances"

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        ends = src.space.device, dst.space.device
        if ends[0].index != ends[1].index and all(end.api is self for end in ends):
            return None
        return super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)


class StreamsOfInstanceNone(Correct):
    """Streams say that they are of instance 0."""

    caught_by = "test_streams_of_other_instances"

    def create_stream(self, index: int) -> Stream:
        return replace(super().create_stream(index), device=Device(self, 0))


class ReplaysTwice(_Replays):
    """A replay does everything twice."""

    caught_by = "test_replay_is_done_once"

    def replay(self, recording: object, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        super().replay(recording, args, stream)
        return super().replay(recording, {}, stream)


class OneRecordingForAll(Correct):
    """A recording that begins while another is made notes for both."""

    caught_by = "test_two_recordings_at_once"

    def begin_record(self, index: int, stream: Stream | None) -> None:
        super().begin_record(index, stream)
        for key in self._recordings:
            self._recordings[key] = self._recordings[index, self._key(index, stream)]
