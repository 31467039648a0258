"""Adaptors and the other allocators: each does its one thing, and they stack."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import landbridge as lb
from landbridge.device.api import Device, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.registry import device
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.allocators.arena import ArenaAllocator
from landbridge.memory.allocators.base import Block
from landbridge.memory.allocators.default import default_allocator, set_default_allocator
from landbridge.memory.allocators.failure_callback import FailureCallbackAllocator
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.allocators.limiting import LimitingAllocator
from landbridge.memory.allocators.logging import LoggingAllocator
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory.allocators.statistics import Counters, StatisticsAllocator
from landbridge.memory.allocators.tracking import TrackingAllocator
from landbridge.memory.allocators.workspace import StackAllocator, workspace
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.device.queueing_device import QueueingDeviceAPI

CPU = device("cpu")


@pytest.fixture(params=[QueueingDeviceAPI, SimLazyDeviceAPI], ids=["queueing", "sim:lazy"])
def naive(request: pytest.FixtureRequest) -> Iterator[NaiveAllocator]:
    api = request.param()
    yield NaiveAllocator(Device(api, 0), "shared")
    assert not getattr(api, "violations", [])


def held_bytes(naive: NaiveAllocator) -> int:
    """Bytes that the device has given out."""
    api = naive.device.api
    if isinstance(api, QueueingDeviceAPI):
        return sum(map(len, api.buffers.values()))
    total, available = map(naive.device.attr, (DeviceAttr.TOTAL_MEMORY, DeviceAttr.AVAILABLE_MEMORY))
    return int(total) - int(available)  # type: ignore[call-overload]


def test_limiting(naive: NaiveAllocator) -> None:
    limited = LimitingAllocator(naive, 1024)
    first = limited.allocate(640, 64)
    with pytest.raises(OutOfMemoryError, match=r"385 bytes requested, 640 of the limit of 1024 bytes are in use"):
        limited.allocate(385, 64)
    second = limited.allocate(384, 64)
    limited.deallocate(first)
    assert limited.used_bytes == 384
    limited.deallocate(second)
    assert (limited.used_bytes, held_bytes(naive)) == (0, 0)
    with pytest.raises(InputError, match="at least 0"):
        LimitingAllocator(naive, -1)


def test_limiting_counts_what_upstream_gives(naive: NaiveAllocator) -> None:
    limited = LimitingAllocator(PooledAllocator(naive, granule=256), 300)
    with pytest.raises(OutOfMemoryError):
        limited.allocate(257, 1)  # 512 in the pool
    assert limited.used_bytes == 0
    limited.allocate(256, 1)


def test_nothing_is_requested_at_the_limit(naive: NaiveAllocator) -> None:
    limited = LimitingAllocator(naive, 1024)
    first = limited.allocate(1024, 64)
    reserved = held_bytes(naive)
    with pytest.raises(OutOfMemoryError, match="1 bytes requested"):
        limited.allocate(0, 64)  # of which a block takes some, too
    assert held_bytes(naive) == reserved
    limited.deallocate(first)


def test_statistics(naive: NaiveAllocator) -> None:
    counted = StatisticsAllocator(naive)
    retained = counted.allocate(128, 1)
    assert counted.push_counters() == Counters(1, 128, 1, 128, 1, 128)
    inner = [counted.allocate(nbytes, 1) for nbytes in (64, 192)]
    counted.deallocate(inner[0])
    assert counted.counters == Counters(1, 192, 2, 256, 2, 256)
    assert counted.pop_counters() == Counters(1, 192, 2, 256, 2, 256)
    assert counted.counters == Counters(2, 320, 3, 384, 3, 384)
    for block in (inner[1], retained):
        counted.deallocate(block)
    assert counted.counters == Counters(0, 0, 3, 384, 3, 384)
    with pytest.raises(InputError, match="without a push_counters"):
        counted.pop_counters()


@given(st.lists(st.sampled_from(["allocate", "free", "push", "pop"]), max_size=40))
def test_statistics_are_the_same_with_and_without_pushes(steps: list[str]) -> None:
    upstream = NaiveAllocator(Device(QueueingDeviceAPI(), 0), "shared")
    plain, nested = StatisticsAllocator(upstream), StatisticsAllocator(upstream)
    live: list[tuple[Block, Block]] = []
    depth = 0
    for nbytes, step in enumerate(steps, 1):
        if step == "allocate":
            live.append((plain.allocate(nbytes, 1), nested.allocate(nbytes, 1)))
        elif step == "free" and live:
            a, b = live.pop(0)
            plain.deallocate(a)
            nested.deallocate(b)
        elif step == "push":
            nested.push_counters()
            depth += 1
        elif step == "pop" and depth:
            nested.pop_counters()
            depth -= 1
    for _ in range(depth):
        nested.pop_counters()
    assert nested.counters == plain.counters


def test_tracking(naive: NaiveAllocator) -> None:
    tracked = TrackingAllocator(naive, stacks=True)
    small, large = tracked.allocate(64, 1), tracked.allocate(1024, 1)
    assert [(h.nbytes, h.serial) for h in tracked.holdings] == [(1024, 2), (64, 1)]
    assert "test_tracking" in tracked.holdings[0].stack
    assert tracked.report().startswith(f"{naive.device} shared: 1088 bytes in 2 blocks\n1024 bytes, block 2\n")
    tracked.deallocate(large)
    tracked.deallocate(small)
    assert tracked.report() == f"{naive.device} shared: 0 bytes in 0 blocks"
    assert TrackingAllocator(naive).allocate(1, 1)


def test_logging(naive: NaiveAllocator, caplog: pytest.LogCaptureFixture) -> None:
    logged = LoggingAllocator(LimitingAllocator(naive, 64))
    with caplog.at_level(logging.DEBUG, "landbridge.memory"):
        logged.deallocate(logged.allocate(64, 32))
        with pytest.raises(OutOfMemoryError):
            logged.allocate(65, 1)
    first, second, third = (record.getMessage() for record in caplog.records)
    assert first.startswith(f"{naive.device} shared: allocate 64 align 32: space ")
    assert second.startswith(f"{naive.device} shared: deallocate 64: space ")
    assert third.startswith(f"{naive.device} shared: allocate 65 failed: ")


def test_failure_callback_frees_memory(naive: NaiveAllocator) -> None:
    limited = LimitingAllocator(naive, 320)
    retained = [limited.allocate(128, 1), limited.allocate(128, 1)]
    requested: list[int] = []

    def free_memory(nbytes: int) -> bool:
        requested.append(nbytes)
        if retained:
            limited.deallocate(retained.pop())
            return True
        return False

    calls = FailureCallbackAllocator(limited, free_memory)
    block = calls.allocate(256, 1)
    assert requested == [256, 256]
    with pytest.raises(OutOfMemoryError):
        calls.allocate(256, 1)
    calls.deallocate(block)
    assert limited.used_bytes == 0


def test_arena(naive: NaiveAllocator) -> None:
    arena = ArenaAllocator(naive, 1000)
    first, second = arena.allocate(100, 1), arena.allocate(100, 256)
    base = first.region.byte_offset
    assert (first.region.space, second.region.byte_offset - base) == (second.region.space, 256)
    with pytest.raises(OutOfMemoryError, match=r"arena of 1000 bytes .* 700 bytes .* 644 are left"):
        arena.allocate(700, 1)
    arena.deallocate(first)
    assert arena.used_bytes == 356
    with pytest.raises(InputError, match="1 blocks of this arena are still out"):
        arena.close()
    arena.deallocate(second)
    assert arena.used_bytes == 0
    third = arena.allocate(1000, 1)
    assert third.region.byte_offset == base
    with pytest.raises(InputError, match="is not out of this arena"):
        arena.deallocate(first)
    arena.deallocate(third)
    arena.close()
    arena.close()
    assert held_bytes(naive) == 0
    with pytest.raises(InputError, match="closed"):
        arena.allocate(1, 1)


def test_stacked_and_used_by_tensors() -> None:
    where = Device(QueueingDeviceAPI(), 0)
    counted = StatisticsAllocator(LimitingAllocator(TrackingAllocator(default_allocator(where, "shared")), 1 << 19))
    before = set_default_allocator(counted)
    try:
        tensor = lb.empty(1000, dtype="int8", device=where, scope="shared")
        assert counted.counters.current_count == 1
        with pytest.raises(OutOfMemoryError, match="of the limit of 524288"):
            lb.empty(1 << 20, dtype="int8", device=where, scope="shared")
        del tensor
        assert counted.counters.current_count == 0
        assert trim(where) > 0  # reaches the pool under the adaptors
    finally:
        set_default_allocator(before)


def test_out_of_memory_names_the_largest_holders() -> None:
    where = Device(QueueingDeviceAPI(), 0)
    before = set_default_allocator(PooledAllocator(NaiveAllocator(where, "shared"), granule=256, cap=4 << 20))
    assert before is not default_allocator(where, "shared")
    retained = [lb.empty((n, 1024), dtype="uint8", device=where, scope="shared") for n in (100, 900, 300)]
    with pytest.raises(OutOfMemoryError) as caught:
        for _ in range(5):
            retained.append(lb.empty((1000, 1024), dtype="uint8", device=where, scope="shared"))
    message = str(caught.value)
    assert "1024000 bytes requested" in message
    assert "used" in message and "free, the largest hole" in message
    assert message.index("Tensor(uint8[1000, 1024], queueing:0") < message.index("Tensor(uint8[900, 1024]")


class Workspace(QueueingDeviceAPI):
    """Has scratch memory of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    def alloc_workspace(self, index: int, nbytes: int, stream: Stream | None) -> Space:
        self.taken += 1
        return Space(Device(self, index), "global", -self.taken)

    def free_workspace(self, space: Space) -> None:
        self.taken -= 1


class TestWorkspace:
    @settings(max_examples=60)
    @given(st.lists(st.tuples(st.integers(0, 1 << 19), st.sampled_from([1, 64, 8192]), st.integers(0, 3)), max_size=30))
    def test_blocks_never_overlap(self, requests: list[tuple[int, int, int]]) -> None:
        api = QueueingDeviceAPI()
        stack = StackAllocator(NaiveAllocator(Device(api, 0), "shared"))
        live: list[Block] = []
        for nbytes, alignment, free in requests:
            live.append(stack.allocate(nbytes, alignment))
            for _ in range(free):
                if live:
                    stack.deallocate(live.pop(len(live) * 2 // 3))
            spans = sorted((b.region.space.handle, b.region.byte_offset, b.nbytes) for b in live if b.nbytes)
            for (space, start, size), (other, begin, _) in pairwise(spans):
                assert space != other or start + size <= begin
        while live:
            stack.deallocate(live.pop())
        assert len(api.buffers) <= 1  # one chunk is kept
        stack.trim()
        assert api.buffers == {}

    def test_reuse_in_stack_order(self) -> None:
        stack = StackAllocator(NaiveAllocator(CPU))
        bottom = stack.allocate(100, 64)
        top = stack.allocate(100, 64)
        stack.deallocate(bottom)  # out of order: waits for the one above
        third = stack.allocate(10, 64)
        assert third.region.byte_offset > top.region.byte_offset
        for block in (top, third):
            stack.deallocate(block)
        assert stack.allocate(1, 1).region.byte_offset == bottom.region.byte_offset
        with pytest.raises(InputError, match="not on this stack"):
            stack.deallocate(top)

    def test_one_for_each_thread_and_stream(self) -> None:
        stream = Stream(CPU, 1)
        here = workspace(CPU)
        assert workspace(CPU) is here
        assert workspace(CPU, stream) is not here
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(workspace(CPU)))
        thread.start()
        thread.join()
        assert found[0] is not here

    def test_a_device_with_its_own(self) -> None:
        api = Workspace()
        owned = workspace(Device(api, 0))
        block = owned.allocate(100, 64)
        assert api.taken == 1 and block.region.space.handle == -1
        owned.deallocate(block)
        assert api.taken == 0
