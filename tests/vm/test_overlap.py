"""Steps of a device and of the CPU overlap where no bytes say otherwise, and wait where they do."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import DeviceError
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import AllocStorage, AllocTensor, Call, ToVDevice
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.targets import Target
from landbridge.vm.dependences import Touch
from landbridge.vm.overlap import Overlap
from landbridge.vm.trace import trace_run
from landbridge.vm.trace_events import chrome_trace
from tests.vm import programs
from tests.vm.lazy_kernels import IMAGE, LazyKernels, N, OwnedWorkspace

HIDDEN = {"scope": "global", "host_access": "none", "coherent": False, "coherence_granule": 64, "offset_alignment": 64}


def two_branches(kernel: str = "double", *, host_first: bool = False) -> Executable:
    """``y = 2 x`` by the device and ``z = 2 x`` by the CPU, which nothing orders, then ``y = 2 y`` by the CPU."""
    on_device = (ToVDevice(0, 4, "x"), Call(1, kernel, (4, 5), 1, vdevice=1), ToVDevice(5, 7, "y"))
    by_host = (Call(0, "double", (0, 2), N),)
    program = (
        AllocStorage(3, 8 * N, 1, 64),
        AllocTensor(4, 3, 0, (N,), "float32", "x there"),
        AllocTensor(5, 3, 4 * N, (N,), "float32", "y there"),
        AllocStorage(6, 4 * N, 0, 64),
        AllocTensor(7, 6, 0, (N,), "float32", "y here"),
        *(by_host + on_device if host_first else on_device + by_host),
        Call(0, "double", (7, 1), N),
    )
    exe = programs.executable({"x": (N,)}, {"y": (N,), "z": (N,)}, program)
    target = Target({"kind": "llvm", "memory": [HIDDEN]}).to_json()
    return replace(
        exe,
        vdevices=(VDevice("cpu", 0, "global"), VDevice("dev", 1, "global")),
        modules=(exe.modules[0], ModuleImage(target, IMAGE)),
        metadata={"on_mismatch": "error"},
    )


def session(api: LazyKernels, kernel: str = "double") -> lb.Session:
    return lb.Session(two_branches(kernel), devices={"cpu": "cpu", "dev": Device(api, 0)}, num_threads=1)


@pytest.fixture(params=range(4), ids="seed {}".format)
def api(request):
    made = LazyKernels(request.param)
    yield made
    assert made.violations == []


def eventually(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(1e-3)
    return condition()


def test_the_cpu_goes_on_while_the_device_works(api):
    """The device does nothing before it is let go; the branch of the CPU is done by then, and the run is not."""
    s = session(api)
    x, z = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    s.set_input_zero_copy("x", x)
    s.set_output_zero_copy("z", z)
    s.run()
    z[:] = 0
    hold = api.hold(0)
    run = s.run_async()
    assert eventually(lambda: bool((z == 2 * x).all()))
    assert not run.done()
    hold.release()
    run.wait(30)
    assert np.array_equal(np.asarray(s.get_output("y")), 4 * x)


def test_what_the_cpu_reads_is_there(api):
    s = session(api)
    x = np.zeros(N, np.float32)
    s.set_input_zero_copy("x", x)
    for step in range(5):
        x[:] = step
        s.run()
        assert (np.asarray(s.get_output("y")) == 4 * step).all() and (np.asarray(s.get_output("z")) == 2 * step).all()
        y, _ = s(x)
        assert (np.asarray(y) == 4 * step).all()
        with lb.ledger() as moves:
            s.run()
        assert [move.nbytes for move in moves] == [4 * N, 4 * N]


def test_runs_are_submitted_to_the_current_stream(api):
    s = session(api)
    s.set_input("x", np.ones(N, np.float32))
    stream = Device(api, 0).create_stream()
    with lb.set_stream(stream):
        s.run()
        assert api.get_stream(0) is stream
        s.run_async().wait(30)
    assert api.get_stream(0) is None
    s.run()
    assert api.launched == [stream, stream, None]
    handle = stream.handle
    api.launched.clear()
    del stream
    gc.collect()
    assert not handle.alive  # given back when nobody refers to it


def test_the_current_device_is_a_sessions(api):
    exe = two_branches()
    with lb.set_device(Device(api, 0)):
        s = lb.Session(exe, devices={"cpu": "cpu"}, num_threads=1)
    (y, _) = s(np.ones(N, np.float32))
    assert (np.asarray(y) == 4).all() and api.launched == [None]


def test_synchronize_waits_for_every_queue(api):
    dev = Device(api, 0)
    assert dev.synchronize() and dev.synchronize(0)
    stream = dev.create_stream()
    hold = api.hold(0, stream)
    assert not dev.synchronize(0.01) and not stream.synchronize(0.01)
    hold.release()
    assert stream.synchronize() and dev.synchronize(5)


def test_a_failed_event_is_an_error_of_the_run_with_the_kernels_name():
    s = session(LazyKernels(0), "fails")
    s.set_input("x", np.ones(N, np.float32))
    for run in (s.run, lambda: s.run_async().wait(30)):
        with pytest.raises(DeviceError, match="kernel fails failed on sim:lazy:0: instruction 7 is illegal"):
            run()


def test_scratch_of_kernels_is_the_devices_workspace():
    api = OwnedWorkspace()
    s = session(api, "scratchy")
    assert len(api.taken) == 1
    (y, _) = s(np.ones(N, np.float32))
    assert (np.asarray(y) == 4).all()
    del s
    gc.collect()
    assert api.taken == [] and api.violations == []


def test_a_trace_has_both_lanes(api):
    x = lb.asarray(np.ones(N, np.float32))
    events = trace_run(two_branches(), Device(api, 0), {"x": x}, num_threads=1)
    assert sorted((event.lane, event.name) for event in events) == [
        ("cpu", "double"),
        ("cpu", "double"),
        ("sim:lazy:0", "double"),
    ]
    assert all(event.duration_us >= 0 for event in events)
    found = json.loads(chrome_trace(events, "model"))["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in found if event["name"] == "thread_name"}
    assert names == {0: "cpu", 1: "sim:lazy:0"}
    assert sorted(event["tid"] for event in found if event["ph"] == "X") == [0, 0, 1]


def test_touches():
    dev = object()
    overlap = Overlap()
    assert not overlap and overlap.before([Touch("m", 0, 8, True)]) == ()
    first, second = overlap.number(), overlap.number()
    overlap.start(first, dev, [Touch("m", 0, 8, False)])
    overlap.start(second, dev, [Touch("m", 8, 16, True)])
    assert overlap.before([Touch("m", 0, 8, False)]) == ()  # both read
    assert overlap.before([Touch("n", 0, 16, True)]) == ()  # other memory
    assert overlap.before([Touch("m", 0, 16, True)], dev) == ()  # the same queue
    reads = [Touch("m", 7, 9, False)]
    assert overlap.conflicts(second, reads) and not overlap.conflicts(first, reads)
    assert overlap.before(reads) == (second,)
    assert overlap.before([Touch("m", 7, 9, True)], object()) == (first,)
    assert not overlap


def test_the_device_is_given_its_work_before_the_cpu_begins():
    """The branch of the device comes last in the program; its step comes first."""
    api = LazyKernels(0)
    exe = two_branches(host_first=True)
    s = lb.Session(exe, devices={"cpu": "cpu", "dev": Device(api, 0)}, num_threads=1)
    kinds = [type(step).__name__ for step in s._executor.program.program.steps]
    assert kinds == ["CopyStep", "KernelStep", "CopyStep", "NativeStep", "WaitStep", "NativeStep"]
    (y, z) = s(np.ones(N, np.float32))
    assert (np.asarray(y) == 4).all() and (np.asarray(z) == 2).all()
