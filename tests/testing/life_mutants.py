"""Mutants of the lives of an instance."""

from __future__ import annotations

from typing import Any

from landbridge.device.api import Device, Event, Region, Stream
from landbridge.testing.lazy_instance import LazyBlock, LazyInstance
from landbridge.testing.lazy_queue import LazyQueue
from tests.testing.mutants import Correct


class MemoryOfTheLastLife(Correct):
    """What was allocated before close counts as used in the next life."""

    caught_by = "test_reopen"

    def _begin(self, index: int) -> None:
        used = self._instances[index].used_bytes
        super()._begin(index)
        self._instances[index].used_bytes = used


class OpensOnce(Correct):
    """What was closed cannot be opened again."""

    caught_by = "test_reopen"

    def open(self, index: int, **options: object) -> None:
        if not self._instances[index].queue.lost:
            super().open(index, **options)


class CloseDrops(Correct):
    """close drops what is queued."""

    caught_by = "test_close_finishes_what_is_queued"

    def close(self, index: int) -> None:
        self._instances[index].queue.lose()


class ClosesOnce(Correct):
    """close of what is closed is an error."""

    caught_by = "test_close_finishes_what_is_queued"

    def close(self, index: int) -> None:
        self._live(index)
        super().close(index)


class TakesAnyOption(Correct):
    """Options that it does not have are passed over."""

    caught_by = "test_unknown_options"

    def open(self, index: int, **options: object) -> None:
        super().open(index)


class BrokenByAnOption(Correct):
    """After options that it does not have it cannot be opened any more."""

    caught_by = "test_unknown_options"
    broken = False

    def open(self, index: int, **options: object) -> None:
        self.broken = self.broken or bool(options)
        if self.broken and not options:
            return
        super().open(index, **options)


class ResetLeavesTheQueue(Correct):
    """reset gives the memory to the next life, and what was queued still writes to it."""

    caught_by = "test_reset_begins_anew"

    def __init__(self) -> None:
        super().__init__()
        self.old: list[LazyBlock] = []
        self.taken: list[LazyBlock] = []
        self.late: LazyQueue | None = None

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Any:
        space = super().alloc_data_space(index, nbytes, alignment, scope, type_hint)
        block: LazyBlock = space.handle
        fitting = next((old for old in self.old if old.data.nbytes == nbytes), None)
        if fitting is not None:
            self.old.remove(fitting)
            block.data, block.address = fitting.data, fitting.address
        self.taken.append(block)
        return space

    def reset(self, index: int) -> None:
        self.old, self.taken = self.taken, []
        self.late = self._instances[index].queue
        self._instances[index] = LazyInstance(index, self.seed)

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        if self.late is not None and dst.space.device != Device(self, 0):
            self.late.finish_all()
        return super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)


class ResetKeepsMemory(Correct):
    """reset drops what is queued, and keeps what is allocated."""

    caught_by = "test_reset_begins_anew"

    def reset(self, index: int) -> None:
        used = self._instances[index].used_bytes
        super().reset(index)
        self._instances[index].used_bytes = used


class StreamsOutliveReset(Correct):
    """Streams are numbers, and those of the last life are streams of the next."""

    caught_by = "test_streams_end_with_their_life"

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        owned = stream and Stream(dst.space.device, stream.handle)
        return super().copy_data_from_to(src, dst, nbytes, owned, keep_alive)

    def _key(self, index: int, stream: Stream | None) -> Any:
        return None if stream is None else stream.handle


class ResetsAll(Correct):
    """A reset is of every instance: the card has one wire for it."""

    caught_by = "test_reset_of_one_instance"

    def reset(self, index: int) -> None:
        for each in range(self.count()):
            super().reset(each)


class ClosesAll(Correct):
    """Closing one instance closes the driver."""

    caught_by = "test_reset_of_one_instance"

    def close(self, index: int) -> None:
        for each in range(self.count()):
            super().close(each)
