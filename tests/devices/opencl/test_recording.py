"""Recordings: queued again, with other memory, as command buffers and as lists."""

from __future__ import annotations

import numpy as np
import pytest

from landbridge.device.api import Device, Region
from landbridge.devices.opencl import recording
from landbridge.devices.opencl.command_buffer import EXTENSION, CommandBufferAPI, CommandBuffers
from landbridge.errors import DeviceError, InputError, UseAfterFreeError

from .test_modules import SOURCE
from .transfers import back, filled, put, region


@pytest.fixture(scope="module")
def module(device: Device) -> object:
    return device.api.load_module(device.index, SOURCE, "opencl-c")


@pytest.fixture(params=["command buffer", "list"])
def way(request: pytest.FixtureRequest, device: Device, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to replay, where the driver has the extension."""
    if request.param == "list":
        monkeypatch.setattr(CommandBuffers, "of", classmethod(lambda cls, instance: None))
    elif EXTENSION not in device.api._instance(device.index).device.extensions:
        pytest.skip(f"{device} has no {EXTENSION}")
    monkeypatch.setattr(recording, "FEWEST", 1)
    return str(request.param)


class Recorded:
    """A recording of (a + b) * 10 and its memory."""

    def __init__(self, device: Device, module: object) -> None:
        self.api, self.index = device.api, device.index
        self.a, self.b, self.c, self.scratch, self.zero = (filled(device, np.zeros(64)) for _ in range(5))
        self.api.begin_record(self.index, None)
        one, block = (1, 1, 1), (64, 1, 1)
        a, b, c, scratch, zero = map(region, (self.a, self.b, self.c, self.scratch, self.zero))
        queued = [
            self.api.launch(module, "add", one, block, (a, b, scratch), None),
            self.api.launch(module, "scale", one, block, (scratch, 10.0, 64), None),
            self.api.launch(module, "add", one, block, (scratch, zero, c), None),
        ]
        self.recording = self.api.end_record(self.index, None)
        assert queued == [None] * 3

    def replay(self, args: dict[int, Region] | None = None) -> None:
        self.api.replay(self.recording, args or {}, None).synchronize()


def test_nothing_is_done_before_the_replay(device: Device, module: object, way: str) -> None:
    r = Recorded(device, module)
    put(r.a, 1)
    assert not back(r.c).any()
    for iteration in range(1, 4):
        put(r.b, iteration)
        r.replay()
        assert (back(r.c) == 10 * (1 + iteration)).all()


def test_arguments_are_rebound_and_stay_so(device: Device, module: object, way: str) -> None:
    r = Recorded(device, module)
    frames = [filled(device, np.full(64, value)) for value in range(4)]
    outputs = [filled(device, np.zeros(64)) for _ in range(2)]
    put(r.b, 5)
    for iteration in range(12):
        frame, output = frames[iteration % 4], outputs[iteration % 2]
        put(output, 0)
        r.replay({0: region(frame), 4: region(output)})
        assert (back(output) == 10 * (iteration % 4 + 5)).all()
    r.replay()
    assert (back(outputs[1]) == 80).all()
    assert not back(r.c).any()


def test_a_driver_that_refuses_command_buffers(device: Device, module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(api: CommandBufferAPI, queue: object) -> int:
        raise DeviceError("clCreateCommandBufferKHR: the OpenCL driver refuses with -30")

    monkeypatch.setattr(CommandBufferAPI, "create", refuse)
    monkeypatch.setattr(recording, "FEWEST", 1)
    r = Recorded(device, module)
    put(r.a, 1)
    for iteration in range(1, 5):
        put(r.b, iteration)
        r.replay()
        assert (back(r.c) == 10 * (1 + iteration)).all()


def test_replays_that_follow_at_once(device: Device, module: object, way: str) -> None:
    """A command buffer may be queued only once at a time; the runtime must not fail where the driver is slower."""
    api, x = device.api, filled(device, np.ones(1 << 16))
    api.begin_record(device.index, None)
    for factor in (2.0, 0.5, 2.0):
        api.launch(module, "scale", (1 << 10, 1, 1), (64, 1, 1), (region(x), factor, 1 << 16), None)
    recorded = api.end_record(device.index, None)
    for _ in range(20):
        last = api.replay(recorded, {}, None)
    last.synchronize()
    assert (back(x) == 2**20).all()


def test_a_driver_that_takes_a_command_buffer_again_late(
    device: Device, module: object, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PoCL says now and then that one is pending whose event is complete."""
    r = Recorded(device, module)
    put(r.a, 1)
    for _ in range(3):
        r.replay()
    buffers = r.recording._buffers
    refused = []
    if buffers is not None:
        functions = buffers._api._functions
        real = functions["clEnqueueCommandBufferKHR"]

        def refuse(*arguments: object) -> int:
            refused.append(len(refused) % 2 == 0)
            return -59 if refused[-1] else int(real(*arguments))

        monkeypatch.setitem(functions, "clEnqueueCommandBufferKHR", refuse)
    for iteration in range(1, 9):
        put(r.b, iteration)
        r.replay()
        assert (back(r.c) == 10 * (1 + iteration)).all()
    assert sum(refused) == (4 if way == "command buffer" else 0)


def test_few_launches_are_queued_one_by_one(device: Device, module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command buffer of few launches takes longer."""
    monkeypatch.setattr(CommandBuffers, "of", classmethod(lambda cls, instance: pytest.fail("a command buffer")))
    r = Recorded(device, module)
    put(r.a, 1)
    for _ in range(3):
        r.replay()
    assert (back(r.c) == 10).all()


@pytest.mark.parametrize("iterations", [1000, pytest.param(30000, marks=pytest.mark.full)])
def test_thousands_of_replays_back_to_back(device: Device, module: object, way: str, iterations: int) -> None:
    r = Recorded(device, module)
    put(r.a, 1)
    for _ in range(iterations):
        r.replay()
    put(r.b, 2)
    r.replay()
    assert (back(r.c) == 30).all()


def test_a_stream_that_records_leaves_the_others_alone(device: Device, module: object) -> None:
    api, x = device.api, filled(device, np.ones(64))
    stream = api.create_stream(device.index)
    api.begin_record(device.index, stream)
    api.launch(module, "scale", (1, 1, 1), (64, 1, 1), (region(x), 2.0, 64), None).synchronize()
    recorded = api.end_record(device.index, stream)
    assert (back(x) == 2).all()
    assert api.replay(recorded, {}, stream).synchronize()  # of nothing
    api.free_stream(stream)


def test_copies_are_recorded_too(device: Device, module: object) -> None:
    api = device.api
    a, b, c = (filled(device, np.full(64, value)) for value in (1, 2, 3))
    api.begin_record(device.index, None)
    assert api.copy_data_from_to(region(a), region(b), 256, None, None) is None
    api.launch(module, "add", (1, 1, 1), (64, 1, 1), (region(a), region(b), region(c)), None)
    recorded = api.end_record(device.index, None)
    assert (back(b) == 2).all()
    put(a, 4)
    api.replay(recorded, {}, None).synchronize()
    assert (back(c) == 8).all()


def test_recordings_are_refused(device: Device, module: object) -> None:
    api = device.api
    with pytest.raises(DeviceError, match="call begin_record first"):
        api.end_record(device.index, None)
    api.begin_record(device.index, None)
    with pytest.raises(DeviceError, match="recording this stream already"):
        api.begin_record(device.index, None)
    api.end_record(device.index, None)
    r = Recorded(device, module)
    with pytest.raises(InputError, match="5 regions has no position 7"):
        r.replay({7: region(r.a)})
    with pytest.raises(InputError, match="replays recordings of its own"):
        api.replay(object(), {}, None)


def test_freed_memory_is_not_replayed(device: Device, module: object) -> None:
    api = device.api
    spaces = [api.alloc_data_space(device.index, 256, 1, "global", None) for _ in range(2)]
    api.begin_record(device.index, None)
    regions = [Region(space) for space in spaces]
    api.launch(module, "add", (1, 1, 1), (64, 1, 1), (regions[0], regions[0], regions[1]), None)
    recorded = api.end_record(device.index, None)
    api.replay(recorded, {}, None).synchronize()
    api.free_data_space(spaces[0])
    with pytest.raises(UseAfterFreeError, match="was freed"):
        api.replay(recorded, {}, None)
    api.free_data_space(spaces[1])
