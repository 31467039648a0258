"""What any stack of allocators must do, as a model simple enough to be right: lists, and every pair compared.

The device under the allocators has a budget and no memory; blocks are ranges of numbers. Work on blocks is pending
until the model says that it is done or somebody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Event, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.errors import OutOfMemoryError
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse
from landbridge.memory_kind import MemoryKind


class Work:
    """An Event that is done when the model or a waiter says so."""

    def __init__(self) -> None:
        self.done = False

    def query(self) -> bool:
        return self.done

    def synchronize(self, timeout: float | None = None) -> bool:
        self.done = True
        return True


class ModelDeviceAPI(DeviceAPI):
    """``budget`` bytes of nothing. ``spaces``: size and alignment of each, by handle; ``on_free`` may object."""

    name: ClassVar[str] = "model"
    api_version: ClassVar[int] = DEVICE_API_VERSION

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.spaces: dict[int, tuple[int, int]] = {}
        self.on_free: Callable[[int], None] = lambda handle: None
        self._handles = count(1)

    @property
    def used_bytes(self) -> int:
        return sum(nbytes for nbytes, _ in list(self.spaces.values()))  # which other threads change

    def count(self) -> int:
        return 1

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        return None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return {"global": MemoryKind("global", "none", coherent=True, alignment=32, size_multiple=8)}

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        assert nbytes > 0 and nbytes % 8 == 0 and alignment >= 32
        if self.used_bytes + nbytes > self.budget:
            raise OutOfMemoryError(f"{nbytes} bytes requested, {self.used_bytes} of {self.budget} used")
        handle = next(self._handles)
        self.spaces[handle] = (nbytes, alignment)
        return Space(Device(self, index), scope, handle)

    def free_data_space(self, space: Space) -> None:
        self.on_free(space.handle)
        del self.spaces[space.handle]

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        raise AssertionError("nothing is copied")


@dataclass(frozen=True)
class _Pending:
    """Work on a range of a space."""

    handle: int
    start: int
    stop: int
    work: Work
    queue: Queue | None


class AllocatorModel:
    """Does what it is told with ``build(device)`` and raises AssertionError where that does anything wrong."""

    def __init__(self, build: Callable[[Device], Allocator], budget: int = 1 << 24) -> None:
        self.api = ModelDeviceAPI(budget)
        self.api.on_free = self._check_free
        self.device = Device(self.api, 0)
        self.queues: tuple[Queue, ...] = (self.device, Stream(self.device, 1), Stream(self.device, 2))
        self.allocator = build(self.device)
        self.live: list[Block] = []
        self.pending: list[_Pending] = []

    @property
    def live_bytes(self) -> int:
        return sum(block.nbytes for block in self.live)

    def allocate(self, nbytes: int, alignment: int, queue: Queue | None) -> bool:
        """Take a block; False when there is none, and then nothing was taken."""
        used = self.api.used_bytes
        try:
            block = self.allocator.allocate(nbytes, alignment, queue)
        except OutOfMemoryError:
            assert self.api.used_bytes <= used
            return False
        handle, start = block.region.space.handle, block.region.byte_offset
        size, base_alignment = self.api.spaces[handle]
        assert block.nbytes >= nbytes and start >= 0 and start + block.nbytes <= size
        assert start % alignment == 0 and base_alignment % alignment == 0
        for other in self.live:
            assert not _overlap(block, other), f"{block} shares bytes with {other}"
        known = {id(use.event) for use in block.uses}
        for pending in self._undone(handle, start, start + block.nbytes):
            assert id(pending.work) in known, f"{block} hides work that is pending on it"
            assert queue is not None and pending.queue == queue, f"{block} of {pending.queue} went to {queue}"
        self.live.append(block)
        return True

    def deallocate(self, index: int, queues: Sequence[Queue | None]) -> None:
        """Give a block back with new work of ``queues`` pending on it."""
        block = self.live.pop(index % len(self.live))
        handle, start = block.region.space.handle, block.region.byte_offset
        new = [_Pending(handle, start, start + block.nbytes, Work(), queue) for queue in queues]
        self.pending += new
        self.allocator.deallocate(block, [QueuedUse(pending.work, pending.queue) for pending in new])

    def finish(self, index: int) -> None:
        """Have some of the work done."""
        self.pending = [pending for pending in self.pending if not pending.work.done]
        if self.pending:
            self.pending.pop(index % len(self.pending)).work.done = True

    def deallocate_all(self) -> None:
        """Give every block back; work stays pending."""
        while self.live:
            self.deallocate(len(self.live) // 2, ())

    def check_no_leak(self) -> None:
        """After everything was given back and trimmed: the device has all its memory."""
        assert self.live == []
        assert self.api.spaces == {}

    def _undone(self, handle: int, start: int, stop: int) -> list[_Pending]:
        return [p for p in self.pending if p.handle == handle and p.start < stop and start < p.stop and not p.work.done]

    def _check_free(self, handle: int) -> None:
        assert not any(block.region.space.handle == handle for block in self.live), "a space with blocks is freed"
        assert not self._undone(handle, 0, 1 << 62), "a space is freed before the last use of it"


def _overlap(a: Block, b: Block) -> bool:
    if a.region.space.handle != b.region.space.handle:
        return False
    first, second = a.region.byte_offset, b.region.byte_offset
    return first < second + b.nbytes and second < first + a.nbytes
