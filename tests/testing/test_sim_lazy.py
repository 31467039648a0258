"""sim:lazy itself: late, out of order where that is legal, and unforgiving."""

from __future__ import annotations

import ctypes
import threading
import time
from random import Random

import numpy as np
import pytest

from landbridge.device.api import Device, Region, Space
from landbridge.device.attr import DeviceAttr
from landbridge.errors import DeviceLostError, HostAccessError, HostViewError, InputError, UseAfterFreeError
from landbridge.testing.lazy_instance import POISON
from landbridge.testing.lazy_queue import LazyQueue
from landbridge.testing.lazy_streams import SEED_VARIABLE
from landbridge.testing.sim_lazy import SimLazyDeviceAPI


@pytest.fixture
def api() -> SimLazyDeviceAPI:
    return SimLazyDeviceAPI(seed=3)


def space(api: SimLazyDeviceAPI, value: int | None = None, scope: str = "global", nbytes: int = 64) -> Space:
    made = api.alloc_data_space(0, nbytes, 1, scope, None)
    if value is not None:
        made.handle.data[:] = value
    return made


def first(of: Space) -> int:
    return int(of.handle.data[0])


def test_nothing_happens_before_somebody_waits(api: SimLazyDeviceAPI) -> None:
    source, target = space(api, 1), space(api, 2)
    event = api.copy_data_from_to(Region(source), Region(target), 64, None, None)
    assert event is not None
    assert first(target) == 2
    assert event.synchronize()
    assert first(target) == 1


def test_unordered_streams_run_in_an_order_of_the_seed() -> None:
    orders = {}
    for seed in range(6):
        for _ in range(2):
            api = SimLazyDeviceAPI(seed)
            target = space(api, 0)
            for value in (1, 2, 3):
                source = space(api, value)
                api.copy_data_from_to(Region(source), Region(target), 64, api.create_stream(0), None)
            api.close(0)
            orders.setdefault(seed, set()).add(first(target))
    assert all(len(last) == 1 for last in orders.values())
    assert len(set().union(*orders.values())) > 1


def test_polling_ends(api: SimLazyDeviceAPI) -> None:
    source, target = space(api, 1), space(api, 2)
    for _ in range(20):
        event = api.copy_data_from_to(Region(source), Region(target), 64, api.create_stream(0), None)
        assert event is not None
        polls = 0
        while not event.query():
            polls += 1
            assert polls < 50
        assert polls >= 1


def test_timeouts_while_work_is_held(api: SimLazyDeviceAPI) -> None:
    hold = api.hold(0)
    event = api.record_event(0, None)
    began = time.monotonic()
    assert not event.synchronize(0.02)
    assert 0.02 <= time.monotonic() - began < 2
    timer = threading.Timer(0.02, hold.release)
    timer.start()
    assert event.synchronize(10)
    timer.join()
    assert event.query()


def test_memory_is_poisoned_before_and_after_its_life(api: SimLazyDeviceAPI) -> None:
    block = space(api)
    assert (block.handle.data == POISON).all()
    block.handle.data[:] = 0
    api.free_data_space(block)
    assert (block.handle.data == POISON).all()


def test_uses_after_free_are_errors_that_name_the_seed(api: SimLazyDeviceAPI) -> None:
    source, target = space(api, 1), space(api, 2)
    api.free_data_space(source)
    with pytest.raises(UseAfterFreeError, match=rf"seed 3; set {SEED_VARIABLE}=3"):
        api.copy_data_from_to(Region(source), Region(target), 64, None, None)
    with pytest.raises(UseAfterFreeError, match="freed twice"):
        api.free_data_space(source)
    assert len(api.violations) == 2


def test_a_free_before_the_last_queued_use(api: SimLazyDeviceAPI) -> None:
    source, target = space(api, 1), space(api, 2)
    api.copy_data_from_to(Region(source), Region(target), 64, None, None)
    with pytest.raises(UseAfterFreeError, match="before its last queued use, copy of 64 bytes"):
        api.free_data_space(source)


def test_a_late_write_to_a_freed_block(api: SimLazyDeviceAPI) -> None:
    block = space(api, 1, "shared")
    address = api.host_pointer(block)
    api.free_data_space(block)
    api.check_freed_blocks()
    ctypes.memset(address, 7, 4)
    with pytest.raises(UseAfterFreeError, match="written after it was freed"):
        api.check_freed_blocks()


def test_host_access(api: SimLazyDeviceAPI) -> None:
    source, target = space(api, 1), space(api, 2, "shared")
    with pytest.raises(HostViewError, match="global"):
        api.host_pointer(source)
    api.copy_data_from_to(Region(source), Region(target), 64, None, None)
    with pytest.raises(HostAccessError, match="pending"):
        api.host_pointer(target)
    api.begin_host_access(Region(target), 64, "r")
    assert ctypes.string_at(api.host_pointer(target), 1) == b"\x01"
    api.end_host_access(Region(target), 64, "r")


def test_loss_is_sticky_until_it_is_opened_again(api: SimLazyDeviceAPI) -> None:
    source, target = space(api, 1), space(api, 2)
    event = api.copy_data_from_to(Region(source), Region(target), 64, None, None)
    assert event is not None
    api.lose(0)
    for call in (
        lambda: space(api),
        event.synchronize,
        event.query,
        lambda: api.copy_data_from_to(Region(source), Region(target), 64, None, None),
        lambda: api.stream_sync(0, None),
        lambda: api.create_stream(0),
    ):
        with pytest.raises(DeviceLostError, match="copy of 64 bytes"):
            call()
    api.free_data_space(source)
    api.open(0, seed=5)
    assert api.get_attr(0, DeviceAttr.AVAILABLE_MEMORY) == api.get_attr(0, DeviceAttr.TOTAL_MEMORY)
    assert first(space(api, 1)) == 1
    with pytest.raises(DeviceLostError):
        api.copy_data_from_to(Region(source), Region(space(api)), 64, None, None)
    with pytest.raises(InputError, match="legal: seed"):
        api.open(0, speed=5)


def test_launches_are_queued_between_copies(api: SimLazyDeviceAPI) -> None:
    source, target, result = space(api, 1), space(api, 0), space(api, 0)
    module = api.load_module(0, b"tests.testing.kernels", "python")
    api.copy_data_from_to(Region(source), Region(target), 64, None, None)
    api.launch(module, "add_one", (1, 1, 1), (1, 1, 1), [Region(target, 32), 8], None)
    event = api.copy_data_from_to(Region(target), Region(result), 64, None, None)
    assert event is not None
    assert first(target) == 0
    event.synchronize()
    assert result.handle.data.tolist() == [1] * 32 + [2] * 8 + [1] * 24
    with pytest.raises(InputError, match="legal: python"):
        api.load_module(0, b"", "spirv")


def test_what_a_stream_is_given(api: SimLazyDeviceAPI) -> None:
    source, target = space(api, 1), space(api, 2)
    other = api.create_stream(1)
    with pytest.raises(InputError, match="a stream of sim:lazy:1"):
        api.stream_sync(0, other)
    stream = api.create_stream(0)
    api.set_stream(0, stream)
    assert api.get_stream(0) is stream
    api.free_stream(stream)
    with pytest.raises(UseAfterFreeError, match="stream was freed"):
        api.copy_data_from_to(Region(source), Region(target), 64, stream, None)
    for offset, nbytes in ((0, 65), (-1, 4), (8, 60), (0, -1)):
        with pytest.raises(InputError, match="do not lie"):
            api.copy_data_from_to(Region(source, offset), Region(target), nbytes, None, None)


def test_the_seed_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SEED_VARIABLE, "17")
    api = SimLazyDeviceAPI()
    assert api.seed == 17
    assert str(Device(api, 1)) == "sim:lazy:1"
    assert np.uint8(POISON) == 0xA5


def test_a_finalizer_may_wait_for_what_is_being_run():
    """The collector may come at any moment, in the middle of a task too, and call who waits for that very task."""
    queue, seen = LazyQueue(Random(0)), []

    def action(name: str) -> None:
        queue.finish_all(5)
        for task in tasks:
            assert task.synchronize(5)
        seen.append(name)

    tasks = [queue.submit("one", name, lambda name=name: action(name)) for name in "ab"]
    queue.finish_all(5)
    assert sorted(seen) == ["a", "b"] and all(task.done for task in tasks)


def test_a_finalizer_may_run_what_was_chosen():
    queue, seen = LazyQueue(Random(0)), []

    class Choice(Random):
        def choice(self, ready):
            (task,) = ready
            if not seen:
                seen.append("finalizer")
                queue.finish((task,), 5)
            return task

    task = queue.submit("one", "work", lambda: seen.append("work"))
    queue._rng = Choice()
    assert task.synchronize(5) and seen == ["finalizer", "work"]
