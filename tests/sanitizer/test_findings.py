"""Each fault that the sanitizer finds, planted by itself, and the same program without it, which is silent."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region, Space, Stream
from landbridge.device.protocols import DeviceModules, EventBarriers, Events, HostBarriers, HostMemory, Streams
from landbridge.device.registry import device as find_device
from landbridge.errors import SanitizerError
from landbridge.sanitizer import check_all, findings


@pytest.fixture
def lazy() -> Device:
    return find_device("sanitize(sim:lazy)")


def alloc(device: Device, nbytes: int, scope: str = "global") -> Space:
    return device.api.alloc_data_space(device.index, nbytes, 1, scope, None)


def host(content: bytes) -> tuple[Region, np.ndarray]:
    array = np.frombuffer(bytearray(content), np.uint8)
    return Region(Space(find_device("cpu"), "global", array.ctypes.data)), array


def put(device: Device, space: Space, content: bytes, stream: Stream | None = None):
    source, array = host(content)
    return device.api.copy_data_from_to(source, Region(space), len(content), stream, array), array


def launch(device: Device, function: str, space: Space, count: int, stream: Stream | None = None):
    api = device.capability(DeviceModules)
    module = api.load_module(device.index, b"tests.sanitizer.kernels", "python")
    return api.launch(module, function, (1, 1, 1), (1, 1, 1), [Region(space), count], stream)


def address(space: Space) -> int:
    return space.device.capability(HostMemory).host_pointer(space)


def kinds() -> list[str]:
    return [found.kind for found in findings()]


# --- redzones ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "count", "byte"), [("fill", 65, 64), ("fill_before", 3, -3)])
def test_a_kernel_that_writes_outside_is_found_when_it_ends(lazy, function, count, byte):
    space = alloc(lazy, 64)
    event = launch(lazy, function, space, count)
    with pytest.raises(SanitizerError, match=rf"redzone: launch of {function}.* wrote byte {byte} of 64 bytes"):
        event.synchronize()
    lazy.api.free_data_space(space)


def test_a_kernel_that_writes_all_there_is_is_silent(lazy):
    space = alloc(lazy, 64)
    assert launch(lazy, "fill", space, 64).synchronize()
    lazy.api.free_data_space(space)
    assert not kinds()


@pytest.mark.parametrize("byte", [64, -1])
@pytest.mark.parametrize(("name", "scope"), [("cpu", "global"), ("sim:lazy", "shared")])
def test_a_host_that_writes_outside_is_found_by_the_free(name, scope, byte):
    device = find_device(f"sanitize({name})")
    space = alloc(device, 64, scope)
    ctypes.memset(address(space) + byte, 1, 1)
    with pytest.raises(
        SanitizerError,
        match=rf"redzone: somebody, before the free at .*test_findings.py:\d+, wrote byte {byte} of 64 bytes",
    ):
        device.api.free_data_space(space)
    device.api.free_data_space(space)


# --- values --------------------------------------------------------------------------------------------------------


def test_bytes_that_nobody_wrote_do_not_reach_the_host_in_silence(lazy):
    space, other = alloc(lazy, 64), alloc(lazy, 64)
    event, _ = put(lazy, space, bytes(16))
    event.synchronize()
    lazy.api.copy_data_from_to(Region(space), Region(other), 64, None, None).synchronize()  # carries them along
    target, array = host(bytes(64))
    lazy.api.copy_data_from_to(Region(other), target, 16, None, array).synchronize()
    with pytest.raises(SanitizerError, match=r"uninitialised: .* reads bytes 16 to 64 of 64 bytes"):
        lazy.api.copy_data_from_to(Region(other), target, 64, None, array)
    for each in (space, other):
        lazy.api.free_data_space(each)


def test_fresh_memory_is_no_zeros():
    device = find_device("sanitize(cpu)")
    space = alloc(device, 64)
    assert ctypes.string_at(address(space), 64) == b"\xcd" * 64
    device.api.free_data_space(space)


def test_a_borrowed_source_that_changes_while_queued_is_found(lazy):
    space = alloc(lazy, 64)
    event, array = put(lazy, space, bytes(64))
    array[5] = 1
    event.synchronize()
    (found,) = findings()
    assert found.kind == "source changed"
    assert re.match("byte 5 of the host memory that copy_data_from_to of 64 bytes", found.text)
    lazy.api.free_data_space(space)


def test_a_borrowed_source_that_changes_afterwards_is_not(lazy):
    space = alloc(lazy, 64)
    event, array = put(lazy, space, bytes(64))
    event.synchronize()
    array[5] = 1
    lazy.api.free_data_space(space)
    assert not kinds()


# --- lifetime ------------------------------------------------------------------------------------------------------


def test_a_use_after_the_free_names_both(lazy):
    space = alloc(lazy, 64)
    lazy.api.free_data_space(space)
    with pytest.raises(
        SanitizerError, match=r"use after free: launch of fill.*allocated at .*, freed at .*test_findings"
    ):
        launch(lazy, "fill", space, 1)
    with pytest.raises(SanitizerError, match="use after free: free_data_space"):
        lazy.api.free_data_space(space)


def test_a_write_after_the_free_is_found():
    device = find_device("sanitize(cpu)")
    space = alloc(device, 64)
    start = address(space)
    device.api.free_data_space(space)
    ctypes.memset(start + 9, 1, 1)
    check_all()
    assert any("byte 9 of 64 bytes" in f.text for f in findings() if f.kind == "use after free")
    ctypes.memset(start + 9, 0xDD, 1)


def test_a_free_before_the_last_use_is_found(lazy):
    space = alloc(lazy, 64)
    launch(lazy, "fill", space, 1)
    with pytest.raises(
        SanitizerError, match=r"freed in use: .* while launch of fill.* may still use it from byte 0 on"
    ):
        lazy.api.free_data_space(space)


def test_a_space_that_is_released_is_a_leak(lazy):
    alloc(lazy, 64)
    check_all()
    assert kinds() == ["leak"]
    assert "test_findings.py" in findings()[0].text


# --- order ---------------------------------------------------------------------------------------------------------


def test_two_streams_that_nothing_orders_are_a_race(lazy):
    streams = lazy.capability(Streams)
    a, b = streams.create_stream(0), streams.create_stream(0)
    space = alloc(lazy, 64)
    first, _retained = put(lazy, space, bytes(64), a)
    target, array = host(bytes(64))
    with pytest.raises(SanitizerError, match=r"race: copy_data_from_to of 8 bytes .*reads byte 40 .*which writes it"):
        lazy.api.copy_data_from_to(Region(space, 40), target, 8, b, array)
    first.synchronize()
    lazy.api.copy_data_from_to(Region(space, 40), target, 8, b, array).synchronize()
    lazy.api.free_data_space(space)


def test_work_of_a_freed_stream_is_not_ordered_before_that_of_a_new_one(lazy):
    """A new stream often lies at the address of one that was freed, and is another queue all the same."""
    streams, space, target = lazy.capability(Streams), alloc(lazy, 64), host(bytes(8))
    seen = []
    for _ in range(20):  # some of them at the same address
        stream = streams.create_stream(0)
        seen.append(id(stream.handle))
        first, _retained = put(lazy, space, bytes(64), stream)
        streams.free_stream(stream)
        del stream
        other = streams.create_stream(0)
        with pytest.raises(SanitizerError, match=r"race: copy_data_from_to of 8 bytes .*which writes it"):
            lazy.api.copy_data_from_to(Region(space), target[0], 8, other, target[1])
        streams.free_stream(other)
        del other
        first.synchronize()
    assert len(set(seen)) < len(seen)
    lazy.api.free_data_space(space)


def test_streams_that_were_freed_are_forgotten_when_their_work_is_done(lazy):
    streams, space, clocks = lazy.capability(Streams), alloc(lazy, 64), lazy.api.order.clocks
    known = len(clocks._queues)
    for _ in range(3):
        stream = streams.create_stream(0)
        put(lazy, space, bytes(64), stream)[0].synchronize()
        streams.free_stream(stream)
    assert len(clocks._queues) == known and len(clocks._host) <= known
    lazy.api.free_data_space(space)
    assert not kinds()


@pytest.mark.parametrize("way", ["sync", "event", "wait", "apart"])
def test_two_streams_that_are_ordered_or_apart_are_not(lazy, way):
    streams, events = lazy.capability(Streams), lazy.capability(Events)
    a, b = streams.create_stream(0), streams.create_stream(0)
    space = alloc(lazy, 128)
    put(lazy, space, bytes(128), a)[0].synchronize()
    first, _retained = put(lazy, space, bytes(64), a)
    if way == "sync":
        streams.sync_stream_from_to(0, a, b)
    elif way == "event":
        events.wait_event(0, b, events.record_event(0, a))
    elif way == "wait":
        streams.stream_sync(0, a)
    target, array = host(bytes(8))
    start = 64 if way == "apart" else 0
    lazy.api.copy_data_from_to(Region(space, start), target, 8, b, array).synchronize()
    first.synchronize()
    lazy.api.free_data_space(space)
    assert not kinds()


def test_a_launch_is_ordered_with_copies(lazy):
    streams = lazy.capability(Streams)
    a = streams.create_stream(0)
    space = alloc(lazy, 64)
    event = launch(lazy, "fill", space, 64, a)
    with pytest.raises(SanitizerError, match=r"race: copy_data_from_to .* writes byte 0 .* after launch of fill"):
        put(lazy, space, bytes(64))
    event.synchronize()
    lazy.api.free_data_space(space)


def test_a_barrier_that_does_not_name_pending_work_is_a_race(lazy):
    barriers, ends = lazy.capability(EventBarriers), lazy.capability(HostBarriers)
    space = alloc(lazy, 64, "shared")
    event = launch(lazy, "fill", space, 64)
    barriers.begin_host_access_after(Region(space), 64, "r", [])  # a kernel need not write its operand
    with pytest.raises(SanitizerError, match=r"race: begin_host_access_after 'rw'.* bytes 0 to 64 .* launch of fill"):
        barriers.begin_host_access_after(Region(space), 64, "rw", [])
    barriers.begin_host_access_after(Region(space), 64, "rw", [event])
    for mode in ("r", "rw", "rw"):
        ends.end_host_access(Region(space), 64, mode)
    lazy.api.free_data_space(space)
    assert kinds() == ["race"]


# --- the whole -----------------------------------------------------------------------------------------------------


def test_tensors_name_the_work_that_they_are_part_of(lazy):
    t = lb.empty((16,), dtype="float32", device=lazy)
    with pytest.raises(SanitizerError, match=r"uninitialised: .*to_device of 64 bytes of Tensor\(float32\[16\]"):
        t.to_device("cpu")


def test_what_the_collector_frees_is_no_leak(lazy):
    t = lb.empty((16,), dtype="float32", device=lazy)
    ring = [t]
    ring.append(ring)
    del t, ring
    check_all()
    assert not kinds()
