"""What happens to the device when a process forks, exits or the driver gives up; in processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from landbridge.device.api import Device

BEGIN = """
import os, sys
import numpy as np
import landbridge as lb
from tests.devices.opencl.test_modules import SOURCE
from tests.devices.opencl.test_streams import SLOW
from tests.devices.opencl.transfers import back, filled, region
device = lb.device("opencl:0")
"""


@pytest.fixture(autouse=True)
def here(device: Device) -> None:
    """There is a device."""


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", BEGIN + script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_child_process_is_reported() -> None:
    script = """
x = filled(device, [1, 2, 3])
child = os.fork()
if child == 0:
    try:
        back(x)
    except lb.LandbridgeError as error:
        os._exit(0 if type(error).__name__ == "ForkedDeviceError" else 1)
    os._exit(2)
assert os.waitpid(child, 0)[1] == 0
assert back(x).tolist() == [1, 2, 3]
print("parent goes on")
"""
    assert run(script) == "parent goes on"


def test_exit_while_a_kernel_runs() -> None:
    script = """
module = device.api.load_module(0, SLOW, "opencl-c")
x = filled(device, [1, 0])
device.api.launch(module, "slow", (1, 1, 1), (1, 1, 1), (region(x), 5_000_000), None)
print("left")
"""
    assert run(script) == "left"


def test_exit_with_everything_alive() -> None:
    """Buffers, imports, views, recordings and streams, in the order that the interpreter likes."""
    script = """
array = np.zeros(1024, np.float32)
try:
    imported = lb.asarray(array, device=device, copy=False)
except lb.ZeroCopyError:
    imported = None
x = filled(device, np.ones(64))
stream = device.api.create_stream(0)
module = device.api.load_module(0, SOURCE, "opencl-c")
device.api.begin_record(0, stream)
device.api.launch(module, "scale", (1, 1, 1), (64, 1, 1), (region(x), 2.0, 64), stream)
recording = device.api.end_record(0, stream)
for _ in range(3):
    event = device.api.replay(recording, {}, stream)
view = x.host_view("r") if x.storage.kind.host_readable else None
cycle = [x, view, recording, imported, event]
cycle.append(cycle)
print("left")
"""
    assert run(script) == "left"


def test_a_lost_device_is_opened_again() -> None:
    """A driver that gives up, made by having it say so: the device is lost for all, and reopened."""
    script = """
import pyopencl as cl
from landbridge.devices.opencl import modules
from landbridge.errors import DeviceLostError
module = device.api.load_module(0, SOURCE, "opencl-c")
x = filled(device, np.ones(64))
works = cl.enqueue_nd_range_kernel
class Gone(cl.LogicError):
    code = cl.status_code.DEVICE_NOT_AVAILABLE
def gives_up(*args, **more):
    raise Gone("clEnqueueNDRangeKernel failed: DEVICE_NOT_AVAILABLE")
cl.enqueue_nd_range_kernel = gives_up
try:
    with device.state.submitting("a launch"):
        device.api.launch(module, "scale", (1, 1, 1), (64, 1, 1), (region(x), 2.0, 64), None)
except DeviceLostError as error:
    assert "DEVICE_NOT_AVAILABLE" in str(error) and "a launch" in str(error), error
cl.enqueue_nd_range_kernel = works
assert device.is_lost
try:
    x.copy()
except DeviceLostError:
    print("lost")
again = device.reopen()
y = filled(again, np.ones(64))
module = again.api.load_module(0, SOURCE, "opencl-c")
again.api.launch(module, "scale", (1, 1, 1), (64, 1, 1), (region(y), 2.0, 64), None).synchronize()
assert (back(y) == 2).all()
del x
print("again")
"""
    assert run(script).split() == ["lost", "again"]
