"""One program on two devices of one driver, in a process of its own: the driver counts devices when it is loaded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from landbridge.device.attr import DeviceAttr
from tests.devices.present import first_instance

PROGRAM = """
import numpy as np
import onnxruntime
import landbridge as lb
from tests.passes.place.scopes import SHAPE, network

x = np.random.default_rng(1).standard_normal(SHAPE, dtype=np.float32)
session = onnxruntime.InferenceSession(network().SerializeToString(), providers=["CPUExecutionProvider"])
expected = session.run(None, {"x": x})[0]
first, second = lb.device("opencl:0"), lb.device("opencl:1")


def check(targets, devices):
    exe = lb.compile(network(), targets, place={"conv2": "b"})
    session = lb.Session(exe, devices=devices)
    session.set_input("x", x)
    with lb.ledger() as moves:
        session.run()
    y = np.empty(SHAPE, np.float32)
    session.get_output(0, out=y)
    assert np.abs(y - expected).max() <= 20 * np.finfo(np.float32).eps  # sums of 144 products, results below 1
    crossed = [(m.source, m.destination, m.nbytes) for m in moves if m.cause == "to_vdevice"]
    a, b = str(devices["a"]), str(devices["b"])
    assert crossed == [(a, b, x.nbytes), (b, a, x.nbytes)], crossed


one, other = lb.Target.from_device(first), lb.Target.from_device(second)
assert one != other
check({"a": one, "b": other}, {"a": first, "b": second})
check({"a": one, "b": other}, {"b": second, "a": first})  # the order means nothing
check({"a": one, "b": one}, {"a": first, "b": first})  # two vdevices of one device do not share storage either
print("done")
"""


@pytest.mark.full
def test_names_bind_devices_and_storage_is_never_shared():
    driver = str(first_instance("opencl").attr(DeviceAttr.DRIVER_VERSION))
    if "Portable Computing Language" not in driver:
        pytest.skip(f"two devices are made of one by PoCL, and the first OpenCL driver here is {driver}")
    environment = os.environ | {"POCL_DEVICES": "pthread basic"}
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=240
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.strip() == "done"
