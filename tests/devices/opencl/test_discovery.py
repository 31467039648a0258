"""Looking for devices: what is passed over, and what a user is told when there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyopencl as cl
import pytest

from landbridge.cli.devices import described_devices
from landbridge.device import registry
from landbridge.device.api import Device
from landbridge.device.attr import DeviceAttr
from landbridge.devices.opencl import discovery
from landbridge.devices.opencl.api import OpenCLDeviceAPI
from landbridge.errors import DeviceIndexError


def test_what_was_tried_is_reported(device: Device) -> None:
    lines = registry.discovery("opencl")
    assert any("works; host memory is used in place" in line for line in lines)
    _, broken, tried = described_devices()
    assert "opencl" not in broken
    reported = next(t for t in tried if t["name"] == "opencl")
    assert reported["found"].startswith(f"{device.api.count()} instance")
    assert sum("works" in line for line in reported["looked_for"]) == device.api.count()


def test_the_driver_names_itself(device: Device) -> None:
    for attr in (DeviceAttr.PRODUCT_NAME, DeviceAttr.VENDOR, DeviceAttr.DRIVER_VERSION):
        assert device.attr(attr)
    assert isinstance(device.attr(DeviceAttr.COMPUTE_UNITS), int)
    assert "cl_khr_byte_addressable_store" in device.attr(DeviceAttr.FEATURES)


def test_attributes_are_what_the_driver_reports(device: Device) -> None:
    found = discovery.discover()[0][device.index].device
    info = cl.device_info
    threads = found.get_info(info.MAX_WORK_GROUP_SIZE)
    wanted = {
        DeviceAttr.API_VERSION: found.get_info(info.VERSION).split()[1],
        DeviceAttr.LOCAL_MEMORY_BYTES: found.get_info(info.LOCAL_MEM_SIZE),
        DeviceAttr.MAX_THREADS_PER_BLOCK: threads,
        DeviceAttr.MAX_BLOCK_DIMENSIONS: tuple(min(n, threads) for n in found.get_info(info.MAX_WORK_ITEM_SIZES)),
        DeviceAttr.MEMORY_CLOCK_HZ: None,
    }
    assert {attr: device.attr(attr) for attr in wanted} == wanted


def test_a_device_that_runs_no_kernel_is_passed_over(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(context: cl.Context, found: cl.Device) -> int:
        raise ArithmeticError("a kernel of one line computed wrong numbers")

    monkeypatch.setattr(discovery, "usable", broken)
    api = OpenCLDeviceAPI()
    assert api.count() == 0
    assert all("passed over" in line and "wrong numbers" in line for line in api.discovery())
    with pytest.raises(DeviceIndexError, match="opencl:0 does not exist"):
        api.memory_kinds(0)


def run(script: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout


ASK = "import landbridge as lb\ntry:\n    lb.device('opencl:0')\nexcept lb.LandbridgeError as e:\n    print(repr(e))\n"


def test_no_driver(tmp_path: Path) -> None:
    seen = run(ASK, OCL_ICD_VENDORS=str(tmp_path))
    assert seen.startswith("DeviceIndexError")
    assert "apt-get install pocl-opencl-icd" in seen


def test_no_pyopencl() -> None:
    hidden = "import importlib.util as u; find = u.find_spec\n"
    hidden += "u.find_spec = lambda name, *rest: None if name == 'pyopencl' else find(name, *rest)\n"
    seen = run(hidden + ASK)
    assert seen.startswith("DeviceIndexError")
    assert "pip install 'landbridge[opencl]'" in seen


def test_the_package_is_light() -> None:
    """pyopencl is loaded when an OpenCL device is asked for, not with the package or for another device."""
    assert run("import sys, landbridge as lb; lb.device('cpu'); print('pyopencl' in sys.modules)").strip() == "False"
