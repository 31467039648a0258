"""Modules from SPIR-V, launches, recordings."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region, Space
from landbridge.devices.vulkan import VulkanDeviceAPI
from landbridge.errors import DeviceError, InputError, KernelBuildError, UseAfterFreeError
from landbridge.tensor import Tensor
from tests.devices.vulkan.shaders import SAXPY, assembled

_COUNT = 1024
_GRID, _BLOCK = (_COUNT // 64, 1, 1), (64, 1, 1)


def api_of(device: Device) -> VulkanDeviceAPI:
    assert isinstance(device.api, VulkanDeviceAPI)
    return device.api


def region(tensor: Tensor) -> Region:
    return tensor.storage.live_region


def floats(device: Device, values: np.ndarray) -> Tensor:
    return lb.asarray(values.astype(np.float32), device=device, copy=True)


def back(tensor: Tensor) -> np.ndarray:
    return np.asarray(tensor.to_device("cpu")).copy()


def test_launch(device: Device) -> None:
    api = api_of(device)
    module = api.load_module(0, assembled(SAXPY), "spirv")
    x, y = floats(device, np.arange(_COUNT)), floats(device, np.ones(_COUNT))
    for _ in range(3):
        event = api.launch(module, "saxpy", _GRID, _BLOCK, [region(x), region(y), 0.5], None)
    assert event is not None and event.synchronize(30)
    assert (back(y) == 1 + 1.5 * np.arange(_COUNT, dtype=np.float32)).all()
    assert (back(x) == np.arange(_COUNT)).all()


def test_launches_on_two_streams_are_ordered_by_events(device: Device) -> None:
    api = api_of(device)
    module = api.load_module(0, assembled(SAXPY), "spirv")
    one, y = floats(device, np.ones(_COUNT)), floats(device, np.zeros(_COUNT))
    streams = [api.create_stream(0), api.create_stream(0)]
    rounds = 100
    for i in range(rounds):
        here, there = streams[i % 2], streams[1 - i % 2]
        api.launch(module, "saxpy", _GRID, _BLOCK, [region(one), region(y), 1.0], here)
        api.sync_stream_from_to(0, here, there)
    api.stream_sync(0, streams[rounds % 2])
    assert (back(y) == rounds).all()


def test_a_recording_is_replayed_with_other_memory(device: Device) -> None:
    api = api_of(device)
    module = api.load_module(0, assembled(SAXPY), "spirv")
    frames = [floats(device, np.full(_COUNT, i)) for i in range(4)]
    total, copy = floats(device, np.zeros(_COUNT)), floats(device, np.zeros(_COUNT))
    api.begin_record(0, None)
    assert api.launch(module, "saxpy", _GRID, _BLOCK, [region(frames[0]), region(total), 2.0], None) is None
    assert api.copy_data_from_to(region(total), region(copy), total.nbytes, None, None) is None
    recording = api.end_record(0, None)
    assert (back(total) == 0).all(), "recording did the work"
    for _ in range(3):
        for frame in frames:  # position 0 is the first region used: the frame
            event = api.replay(recording, {0: region(frame)}, None)
    assert event is not None and event.synchronize(30)
    assert (back(total) == 3 * 2 * (0 + 1 + 2 + 3)).all()
    assert (back(copy) == back(total)).all()
    assert len(recording._recorded) == 4, "memory that went round was recorded again"
    api.replay(recording, {}, None)  # the last binding stays
    assert (back(total) == 36 + 6).all()


def test_a_recording_keeps_few_bindings(plain: Device) -> None:
    api = api_of(plain)
    module = api.load_module(0, assembled(SAXPY), "spirv")
    frames = [floats(plain, np.full(_COUNT, i)) for i in range(20)]
    total = floats(plain, np.zeros(_COUNT))
    api.begin_record(0, None)
    api.launch(module, "saxpy", _GRID, _BLOCK, [region(frames[0]), region(total), 1.0], None)
    recording = api.end_record(0, None)
    for frame in frames:
        api.replay(recording, {0: region(frame)}, None)
    assert len(recording._recorded) == 16
    assert (back(total) == sum(range(20))).all()


def test_a_recording_on_freed_memory_is_refused(plain: Device) -> None:
    api = api_of(plain)
    first, second = (api.alloc_data_space(0, 256, 1, "global", None) for _ in range(2))
    api.begin_record(0, None)
    api.copy_data_from_to(Region(first), Region(second), 256, None, None)
    recording = api.end_record(0, None)
    api.free_data_space(second)
    with pytest.raises(UseAfterFreeError):
        api.replay(recording, {}, None)
    with pytest.raises(InputError, match="no position 7"):
        api.replay(recording, {7: Region(first)}, None)
    api.free_data_space(first)


def test_what_recordings_refuse(plain: Device) -> None:
    api = api_of(plain)
    with pytest.raises(InputError, match="begin_record first"):
        api.end_record(0, None)
    api.begin_record(0, None)
    with pytest.raises(InputError, match="recorded already"):
        api.begin_record(0, None)
    with pytest.raises(InputError, match="replays what end_record gave"):
        api.replay("tape", {}, None)
    api.end_record(0, None)


@pytest.fixture
def saxpy(plain: Device) -> Iterator[tuple[VulkanDeviceAPI, object, Space]]:
    api = api_of(plain)
    space = api.alloc_data_space(0, 4096, 1, "global", None)
    yield api, api.load_module(0, assembled(SAXPY), "spirv"), space
    api.free_data_space(space)


def test_wrong_launches_never_reach_the_driver(saxpy: tuple[VulkanDeviceAPI, object, Space]) -> None:
    api, module, space = saxpy
    whole = Region(space)

    def launch(args: list[object], grid: tuple[int, ...] = (1, 1, 1), block: tuple[int, ...] = _BLOCK) -> None:
        api.launch(module, "saxpy", grid, block, args, None)  # type: ignore[arg-type]

    with pytest.raises(InputError, match="takes 2 buffers and 1 numbers; 1 and 1"):
        launch([whole, 1.0])
    with pytest.raises(InputError, match="takes 2 buffers and 1 numbers; 2 and 0"):
        launch([whole, whole])
    with pytest.raises(InputError, match=r"blocks of \(64, 1, 1\); \(32, 1, 1\)"):
        launch([whole, whole, 1.0], block=(32, 1, 1))
    with pytest.raises(InputError, match="three numbers from 1 to"):
        launch([whole, whole, 1.0], grid=(1 << 20, 1, 1))
    with pytest.raises(InputError, match="three numbers from 1 to"):
        launch([whole, whole, 1.0], grid=(0, 1, 1))
    with pytest.raises(InputError, match="minStorageBufferOffsetAlignment"):
        launch([Region(space, 2), whole, 1.0])
    with pytest.raises(InputError, match="minStorageBufferOffsetAlignment"):
        launch([Region(space, 4096), whole, 1.0])
    with pytest.raises(InputError, match="memory of cpu:0"):
        launch([region(lb.empty((64,), dtype="float32", device="cpu")), whole, 1.0])
    with pytest.raises(InputError, match="was given 'a'"):
        launch([whole, whole, "a"])
    with pytest.raises(DeviceError, match="no kernel 'daxpy'; it has: saxpy"):
        api.launch(module, "daxpy", (1, 1, 1), _BLOCK, [whole, whole, 1.0], None)
    with pytest.raises(InputError, match="what load_module gave"):
        api.launch("module", "saxpy", (1, 1, 1), _BLOCK, [whole, whole, 1.0], None)
    launch([whole, Region(space, 1024), 1.0])
    api.stream_sync(0, None)


def test_modules_that_are_refused(plain: Device) -> None:
    api, good = api_of(plain), assembled(SAXPY)
    with pytest.raises(InputError, match="legal: spirv"):
        api.load_module(0, b"kernel void f() {}", "opencl-c")
    with pytest.raises(KernelBuildError, match="whole words"):
        api.load_module(0, b"abc", "spirv")
    with pytest.raises(KernelBuildError, match="not SPIR-V"):
        api.load_module(0, bytes(64), "spirv")
    with pytest.raises(KernelBuildError, match="instruction at word"):
        api.load_module(0, good[:-12], "spirv")
    with pytest.raises(KernelBuildError, match="a function without an end"):
        api.load_module(0, good[:-8], "spirv")
    with pytest.raises(KernelBuildError, match=r"1\.3.*make 1\.4 or newer"):
        api.load_module(0, good[:4] + bytes((0, 3, 1, 0)) + good[8:], "spirv")
    with pytest.raises(KernelBuildError, match="newest is"):
        api.load_module(0, good[:4] + bytes((0, 9, 1, 0)) + good[8:], "spirv")
    queries = SAXPY.replace("OpCapability Shader", "OpCapability Shader\nOpCapability ImageQuery")
    with pytest.raises(KernelBuildError, match="capability 50, which Landbridge does not switch on"):
        api.load_module(0, assembled(queries), "spirv")
    # Big-endian words are legal, and read.
    swapped = np.frombuffer(good, "<u4").astype(">u4").tobytes()
    assert api.load_module(0, swapped, "spirv") is not None


def test_a_capability_the_device_lacks_is_named(plain: Device) -> None:
    api = api_of(plain)
    api.logical(0).features -= {"shaderFloat64"}
    doubles = SAXPY.replace("OpCapability Shader", "OpCapability Shader\nOpCapability Float64")
    with pytest.raises(KernelBuildError, match="needs Float64, and the device has no shaderFloat64"):
        api.load_module(0, assembled(doubles), "spirv")


def test_a_workgroup_over_the_limit_is_refused_before_the_driver_sees_it(plain: Device) -> None:
    api = api_of(plain)
    wide = assembled(SAXPY.replace("LocalSize 64 1 1", "LocalSize 64 1024 1"))
    module = api.load_module(0, wide, "spirv")
    space = api.alloc_data_space(0, 4096, 1, "global", None)
    with pytest.raises(KernelBuildError, match="65536 invocations of a workgroup; the device allows 1024"):
        api.launch(module, "saxpy", (1, 1, 1), (64, 1024, 1), [Region(space), Region(space), 1.0], None)
    api.free_data_space(space)


def test_modules_are_released_while_their_work_runs(plain: Device) -> None:
    api = api_of(plain)
    one, y = floats(plain, np.ones(_COUNT)), floats(plain, np.zeros(_COUNT))
    for _ in range(4):
        module = api.load_module(0, assembled(SAXPY), "spirv")
        api.launch(module, "saxpy", _GRID, _BLOCK, [region(one), region(y), 1.0], None)
        del module
        gc.collect()
    assert (back(y) == 4).all()
    for _ in range(2):  # the first lets go of what the work used, the second destroys that
        api.logical(0).collect()
    left = [kind for kind, _ in api.logical(0)._owned if kind in ("Pipeline", "ShaderModule", "DescriptorPool")]
    assert left == []


def test_streams_leave_nothing_behind(plain: Device) -> None:
    api = api_of(plain)
    device = api.logical(0)
    source, target = (api.alloc_data_space(0, 256, 1, "global", None) for _ in range(2))

    def semaphores() -> int:
        return sum(count for (kind, _), count in device._owned.items() if kind == "Semaphore")

    def use_streams() -> int:
        for _ in range(20):
            stream = api.create_stream(0)
            api.copy_data_from_to(Region(source), Region(target), 256, stream, None)
            api.stream_sync(0, stream)
            api.free_stream(stream)
        del stream
        device.collect()
        device.collect()
        return semaphores()

    use_streams()
    assert use_streams() <= 8, "each stream that was freed left a semaphore"
    for space in (source, target):
        api.free_data_space(space)
