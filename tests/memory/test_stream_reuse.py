"""A block freed on one stream is not handed to another before its last use is done; on its own stream, at once."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.stream import set_stream
from landbridge.memory.allocators.arena import ArenaAllocator
from landbridge.memory.allocators.base import Allocator, QueuedUse
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory.allocators.workspace import StackAllocator, workspace
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.testing.sim_lazy import SimLazyDeviceAPI

N = 4096


@pytest.fixture(params=range(3), ids="seed {}".format)
def api(request: pytest.FixtureRequest) -> Iterator[SimLazyDeviceAPI]:
    made = SimLazyDeviceAPI(request.param)
    yield made
    assert made.violations == []
    made.check_freed_blocks()


@pytest.fixture
def dev(api: SimLazyDeviceAPI) -> Device:
    return Device(api, 0)


@pytest.fixture
def pool(dev: Device) -> PooledAllocator:
    return PooledAllocator(NaiveAllocator(dev, "shared"), granule=256)


def new(pool: Allocator, stream: Stream | None) -> Tensor:
    """A Tensor that ``stream`` will use."""
    with set_stream(stream) if stream is not None else nullcontext():
        return lb.empty(N, dtype="uint8", device=pool.device, scope=pool.scope, allocator=pool)


def filled(dev: Device, value: int) -> Tensor:
    """``N`` bytes of ``value`` in memory that the host does not see, so that copies from it stay queued."""
    return lb.asarray(np.full(N, value, np.uint8), device=dev)


def values(tensor: Tensor) -> set[int]:
    with tensor.host_view("r") as view:
        return set(view.tolist())


def test_pool(api: SimLazyDeviceAPI, dev: Device, pool: PooledAllocator) -> None:
    first, second = api.create_stream(0), api.create_stream(0)
    sources = [filled(dev, value) for value in (1, 2, 3)]
    mine = new(pool, first)
    where = mine.storage.region
    hold = api.hold(0, first)
    copy_tensor(mine, sources[0], cause="test", stream=first)
    mine.storage.free()  # with the copy pending: nobody waits, the hold would never end
    theirs = new(pool, second)
    copy_tensor(theirs, sources[1], cause="test", stream=second)
    assert theirs.storage.region != where
    again = new(pool, first)
    assert again.storage.region == where
    copy_tensor(again, sources[2], cause="test", stream=first)
    assert new(pool, None).storage.region != where  # the device's own queue is another one
    hold.release()
    assert (values(theirs), values(again)) == ({2}, {3})
    again.storage.free()
    both = [new(pool, second), new(pool, second)]
    assert where in [tensor.storage.region for tensor in both]  # now that it is done


def test_the_host_waits_for_what_was_there_before(api: SimLazyDeviceAPI, dev: Device, pool: PooledAllocator) -> None:
    stream = api.create_stream(0)
    source = filled(dev, 7)
    old = new(pool, stream)
    hold = api.hold(0, stream)
    copy_tensor(old, source, cause="test", stream=stream)
    where = old.storage.region
    old.storage.free()
    anew = new(pool, stream)
    assert anew.storage.region == where and anew.storage.has_queued
    hold.release()
    with anew.host_view("w") as view:  # after the copy, or the copy would be over it
        view[...] = 9
    api.stream_sync(0, stream)
    assert values(anew) == {9}


def test_owners_are_released_when_their_work_is_done(api: SimLazyDeviceAPI, dev: Device, pool: PooledAllocator) -> None:
    """Also while another queue is stuck, and though nobody uses the device any more."""
    stuck, stream = api.create_stream(0), api.create_stream(0)
    source = filled(dev, 5)
    blocked, target = new(pool, stuck), new(pool, stream)
    hold = api.hold(0, stuck)
    copy_tensor(blocked, source, cause="test", stream=stuck)
    copy_tensor(target, source, cause="test", stream=stream)
    watched = weakref.ref(source.storage), weakref.ref(target.storage)
    assert values(target) == {5}
    del source, target
    gc.collect()
    assert watched[1]() is None
    assert watched[0]() is not None  # what is stuck reads it
    hold.release()
    assert values(blocked) == {5}
    gc.collect()
    assert watched[0]() is None


@pytest.mark.parametrize("kind", ["pooled", "naive"])
def test_what_work_needs_lives_until_it_is_done(
    api: SimLazyDeviceAPI, dev: Device, pool: PooledAllocator, kind: str
) -> None:
    source = filled(dev, 5)
    target = new(pool if kind == "pooled" else NaiveAllocator(dev, "shared"), None)
    copy_tensor(target, source, cause="test")
    watched = weakref.ref(source.storage)
    del source, target
    gc.collect()
    assert watched() is not None
    trim(dev)
    assert watched() is None
    assert (pool.reserved_bytes, api.get_attr(0, DeviceAttr.AVAILABLE_MEMORY)) == (0, 1 << 26)


def test_out_of_memory_waits_for_parked_blocks(api: SimLazyDeviceAPI, dev: Device) -> None:
    pool = PooledAllocator(NaiveAllocator(dev, "shared"), granule=256, cap=N, chunk=N)
    source, target = filled(dev, 5), new(pool, None)
    copy_tensor(target, source, cause="test")
    del target  # alive until the copy is done
    larger = lb.empty(N // 2, dtype="uint8", device=dev, scope="shared", allocator=pool)  # another size: no reuse as is
    assert larger.nbytes == N // 2


def test_random_streams(api: SimLazyDeviceAPI, dev: Device, pool: PooledAllocator) -> None:
    rng = np.random.default_rng(api.seed)
    streams = [None, *(api.create_stream(0) for _ in range(2))]
    sources = [filled(dev, value) for value in range(8)]
    live: list[tuple[Tensor, int]] = []
    for _ in range(60):
        stream, value = streams[rng.integers(3)], int(rng.integers(8))
        tensor = new(pool, stream)
        copy_tensor(tensor, sources[value], cause="test", stream=stream)
        live.append((tensor, value))
        if len(live) > 4:
            retained, value = live.pop(int(rng.integers(len(live))))
            if rng.random() < 0.3:
                assert values(retained) == {value}
            retained.storage.free()
    for tensor, value in live:
        assert values(tensor) == {value}


def test_arena_starts_over_after_the_last_use(api: SimLazyDeviceAPI, dev: Device) -> None:
    arena = ArenaAllocator(NaiveAllocator(dev, "shared"), 1 << 16)
    tensor = new(arena, None)
    copy_tensor(tensor, filled(dev, 4), cause="test")
    tensor.storage.free()
    again = new(arena, None)
    assert not again.storage.has_queued
    with again.host_view("w") as view:
        view[...] = 6
    del view
    api.stream_sync(0, None)
    assert values(again) == {6}
    again.storage.free()
    arena.close()


def test_workspace_of_each_stream(api: SimLazyDeviceAPI, dev: Device) -> None:
    first, second = api.create_stream(0), api.create_stream(0)
    mine = workspace(dev, first)
    assert isinstance(mine, StackAllocator)
    assert mine is workspace(dev, first) and mine is not workspace(dev, second)
    with set_stream(second):
        assert workspace(dev) is workspace(dev, second)
    block = mine.allocate(N, 256, first)
    hold = api.hold(0, first)
    event = api.record_event(0, first)
    mine.deallocate(block, [QueuedUse(event, first)])
    again = mine.allocate(N, 256, first)
    assert again.region == block.region  # at once: the stream keeps the order
    assert [use.event for use in again.uses] == [event]
    other = workspace(dev, second).allocate(N, 256, second)
    assert other.region.space != block.region.space
    hold.release()
    mine.deallocate(again)
    workspace(dev, second).deallocate(other)


def test_a_thread_that_runs_out_trims_workspaces_of_others(dev: Device) -> None:
    mine = workspace(dev)
    assert isinstance(mine, StackAllocator)
    mine.deallocate(mine.allocate(N, 256))
    assert mine.reserved_bytes > 0
    thread = threading.Thread(target=lambda: trim(dev))
    thread.start()
    thread.join()
    assert mine.reserved_bytes == 0
    mine.deallocate(mine.allocate(N, 256))
