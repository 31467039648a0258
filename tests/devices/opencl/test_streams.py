"""Queues, and the waits between them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from landbridge.device.api import Device
from landbridge.devices.opencl import driver_waits

from .transfers import back, filled, read, region

SLOW = b"""
kernel void slow(global float *x, int rounds) {
    float v = x[0];
    for (int i = 0; i < rounds; ++i) v = sin(v) + 1.0f;
    x[0] = v;
    x[1] += 1.0f;
}
"""


@pytest.fixture(scope="module")
def slow(device: Device) -> object:
    return device.api.load_module(device.index, SLOW, "opencl-c")


@pytest.fixture
def queues(device: Device, slow: object) -> None:
    """Skips on drivers that run kernels when they are queued, so that nothing is ever pending."""
    x = filled(device, [1, 0])
    event = device.api.launch(slow, "slow", (1, 1, 1), (1, 1, 1), (region(x), 2_000_000), None)
    at_once = event.query()
    event.synchronize()
    if at_once:
        pytest.skip(f"{device} runs kernels when they are queued")


@pytest.mark.usefixtures("queues")
def test_a_wait_has_a_limit(device: Device, slow: object) -> None:
    x = filled(device, [1, 0])
    event = device.api.launch(slow, "slow", (1, 1, 1), (1, 1, 1), (region(x), 5_000_000), None)
    assert event.synchronize(0.001) is False
    assert event.query() is False
    assert event.synchronize() is True
    assert back(x)[1] == 1


@pytest.mark.usefixtures("queues")
def test_other_threads_run_during_a_wait(device: Device, slow: object) -> None:
    x = filled(device, [1, 0])
    event = device.api.launch(slow, "slow", (1, 1, 1), (1, 1, 1), (region(x), 5_000_000), None)
    iterations = 0
    done = threading.Event()

    def iteration() -> None:
        nonlocal iterations
        while not done.is_set():
            iterations += 1
            time.sleep(0.001)

    thread = threading.Thread(target=iteration, daemon=True)
    thread.start()
    event.synchronize()
    done.set()
    thread.join()
    assert iterations > 1


def test_two_streams_with_a_dependence(device: Device, slow: object) -> None:
    """A slow writer on one stream, a reader on the other: many rounds, so that luck does not last."""
    api, index = device.api, device.index
    first, second = api.create_stream(index), api.create_stream(index)
    x, y = filled(device, [1, 0]), filled(device, [0, 0])
    for iteration in range(1, 40):
        api.launch(slow, "slow", (1, 1, 1), (1, 1, 1), (region(x), 20_000 * (iteration % 3)), first)
        api.sync_stream_from_to(index, first, second)
        api.copy_data_from_to(region(x), region(y), 8, second, None)
        api.sync_stream_from_to(index, second, first)
        api.stream_sync(index, second)
        assert read(y)[1] == iteration
    api.free_stream(first)
    api.free_stream(second)


def test_a_view_waits_for_every_stream(device: Device, slow: object) -> None:
    api, index = device.api, device.index
    if device.memory_kind().host_access == "none":
        pytest.skip(f"{device} has memory of its own")
    stream = api.create_stream(index)
    x = filled(device, [1, 0])
    api.launch(slow, "slow", (1, 1, 1), (1, 1, 1), (region(x), 3_000_000), stream)
    api.begin_host_access(region(x), 8, "r")
    assert np.ctypeslib.as_array((np.ctypeslib.ctypes.c_float * 2).from_address(x.storage.address))[1] == 1
    api.end_host_access(region(x), 8, "r")
    api.free_stream(stream)


def test_time_by_the_devices_clock() -> None:
    """In a process of its own: queues are timed only where that was asked for."""
    script = """
import landbridge as lb
from tests.devices.opencl.test_streams import SLOW
from tests.devices.opencl.transfers import filled, region
device = lb.device("opencl:0")
assert device.api.elapsed_ms(device.api.record_event(0, None), device.api.record_event(0, None)) is None
device.api.open(0, profiling=True)
slow = device.api.load_module(0, SLOW, "opencl-c")
x = filled(device, [1, 0])
start = device.api.record_event(0, None)
device.api.launch(slow, "slow", (1, 1, 1), (1, 1, 1), (region(x), 3_000_000), None)
end = device.api.record_event(0, None)
end.synchronize()
assert device.api.elapsed_ms(start, end) > 1
"""
    subprocess.run([sys.executable, "-c", script], check=True)


SEVERAL = """
import numpy as np, landbridge as lb
from landbridge.device import registry
from tests.devices.opencl.test_modules import SOURCE
from tests.devices.opencl.transfers import back, filled, region
first, second, third = registry.devices("opencl")
assert first.api is second.api
x = filled(first, np.arange(64))
y = lb.empty((64,), dtype="float32", device=second)
assert first.api.can_copy(x.storage.live_region.space, y.storage.live_region.space)
second.api.copy_data_from_to(region(x), region(y), 256, None, None).synchronize()
module = third.api.load_module(2, SOURCE, "opencl-c")
third.api.launch(module, "scale", (1, 1, 1), (64, 1, 1), (region(y), 2.0, 64), None).synchronize()
assert np.array_equal(back(y), 2 * np.arange(64))
event = first.api.record_event(0, None)
third.api.wait_event(2, None, event)
third.api.stream_sync(2, None)
assert np.array_equal(np.asarray(x.to_device(second).to_device(third).to_device("cpu")), np.arange(64))
from tests.testing.whole_suite import run_conformance
failed = [r for r in run_conformance("opencl:2") if r.outcome == "fail"]
assert not failed, failed
"""


@pytest.mark.full
def test_devices_of_one_driver_share_memory(device: Device) -> None:
    """PoCL makes three devices of one CPU when asked to."""
    if "pocl" not in str(device.api._instance(0).device.platform.version).lower():
        pytest.skip("the first driver is not PoCL")
    environment = {**os.environ, "POCL_DEVICES": "pthread basic basic"}
    subprocess.run([sys.executable, "-c", SEVERAL], check=True, env=environment)


@pytest.mark.usefixtures("queues")
def test_ctrl_c_ends_a_wait(device: Device) -> None:
    script = """
import _thread, threading, time
import landbridge as lb
from tests.devices.opencl.test_streams import SLOW
from tests.devices.opencl.transfers import filled, region
device = lb.device("opencl:0")
slow = device.api.load_module(0, SLOW, "opencl-c")
x = filled(device, [1, 0])
event = device.api.launch(slow, "slow", (1, 1, 1), (1, 1, 1), (region(x), 40_000_000), None)
threading.Timer(0.1, _thread.interrupt_main).start()
try:
    event.synchronize()
except KeyboardInterrupt:
    assert not event.query()
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "interrupted"
    done = subprocess.run([sys.executable, "-c", script + AGAIN], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["interrupted", "1"]


#: After an interrupt: further waits have a helper of their own, and the one before ends with its wait.
AGAIN = """
for _ in range(3):
    event = device.api.launch(slow, "slow", (1, 1, 1), (1, 1, 1), (region(x), 300_000), None)
    assert event.synchronize()
waited = time.monotonic()
while time.monotonic() < waited + 10:
    helpers = [thread for thread in threading.enumerate() if thread.name == "opencl wait"]
    if len(helpers) == 1:
        break
    time.sleep(0.01)
print(len(helpers))
"""


def test_a_wait_of_another_thread_needs_no_helper(
    device: Device, slow: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, results = filled(device, [1, 0]), []

    def wait() -> None:
        event = device.api.launch(slow, "slow", (1, 1, 1), (1, 1, 1), (region(x), 1_000_000), None)
        results.append(event.synchronize())

    thread = threading.Thread(target=wait)
    with monkeypatch.context() as patched:  # not for what the main thread waits for afterwards
        patched.setattr(driver_waits, "_idle", [])
        patched.setattr(driver_waits, "_Helper", None)
        thread.start()
        thread.join()
    assert results == [True]
    assert read(x)[1] == 1
