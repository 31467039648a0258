"""What is there, what is missing and how to get it; a device that is lost, closed, or used after fork."""

from __future__ import annotations

import ctypes
import gc
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import landbridge as lb
from landbridge.device import registry
from landbridge.device.api import Device
from landbridge.device.attr import DeviceAttr
from landbridge.devices.vulkan import VulkanDeviceAPI, calls
from landbridge.errors import DeviceError, DeviceIndexError, DeviceLostError, InputError
from tests.devices.present import first_instance
from tests.devices.vulkan.conftest import make_api, use_api
from tests.devices.vulkan.test_modules import api_of, back


def child(code: str, **environment: str) -> str:
    """What a process that runs ``code`` prints; it must end well."""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_device_that_nobody_holds_ends_with_the_threads_of_its_driver() -> None:
    counts = []
    for _ in range(3):
        make_api().logical(0)
        gc.collect()
        counts.append(len(list(Path("/proc/self/task").iterdir())))
    assert counts[0] == counts[1] == counts[2]


def test_without_a_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "LOADER_NAMES", ("libvulkan-that-is-not-there.so",))
    api = VulkanDeviceAPI()
    assert api.count() == 0
    (reported,) = api.discovery()
    assert "no Vulkan loader" in reported and "libvulkan1" in reported
    assert all(api.get_attr(0, attr) is None for attr in DeviceAttr)
    monkeypatch.setattr(registry, "_devices", {})
    monkeypatch.setitem(registry._plugins._known, "vulkan", api)
    with pytest.raises(DeviceIndexError, match="no Vulkan loader was found"):
        registry.device("vulkan:0")
    with pytest.raises(DeviceIndexError, match="no Vulkan loader was found"):
        api.alloc_data_space(0, 8, 1, "global", None)


def test_without_a_driver(tmp_path: Path) -> None:
    """A loader that finds no driver: discovery is clean, and says what to install."""
    first_instance("vulkan")
    code = (
        "import landbridge as lb\nfrom landbridge.device import registry\n"
        "print(registry.devices('vulkan'), registry.discovery('vulkan'))\n"
        "try:\n    lb.device('vulkan:0')\nexcept lb.errors.DeviceIndexError as error:\n    print(error)\n"
    )
    nowhere = str(tmp_path / "none.json")
    printed = child(code, VK_ICD_FILENAMES=nowhere, VK_DRIVER_FILES=nowhere)
    assert printed.startswith("[] ('no Vulkan driver finds a device")
    assert "device vulkan:0 does not exist" in printed and "mesa-vulkan-drivers" in printed


def test_import_and_listing_load_no_driver() -> None:
    code = (
        "import landbridge, sys\nfrom landbridge.device import registry\nassert 'vulkan' in registry.names()\n"
        "assert not [m for m in sys.modules if 'vulkan' in m]\n"
        "print('libvulkan' in open('/proc/self/maps').read())\n"
    )
    assert child(code) == "False\n"


def test_attributes(plain: Device) -> None:
    assert plain.attr(DeviceAttr.PRODUCT_NAME)
    threads = plain.attr(DeviceAttr.MAX_THREADS_PER_BLOCK)
    assert isinstance(threads, int) and threads >= 128
    total = plain.attr(DeviceAttr.TOTAL_MEMORY)
    assert isinstance(total, int) and total >= plain.memory_kind().capacity > 0  # type: ignore[operator]
    features = plain.attr(DeviceAttr.FEATURES)
    assert isinstance(features, tuple) and "timelineSemaphore" in features


def test_attributes_are_what_the_driver_reports(plain: Device) -> None:
    """Fields of the driver's own structures, read from the bytes at which vulkan_core.h puts them."""
    logical = api_of(plain).logical(0)
    properties = (ctypes.c_uint32 * 256)()
    logical._instance.calls.vkGetPhysicalDeviceProperties(logical.physical.handle, properties)
    limits = bytes(properties)[296:]  # after five words, 256 characters, 16 bytes and padding
    version, invocations = properties[0], int.from_bytes(limits[232:236], "little")
    extents = struct.unpack_from("<3I", limits, 236)
    wanted = {
        DeviceAttr.API_VERSION: f"{version >> 22}.{version >> 12 & 1023}.{version & 4095}",
        DeviceAttr.LOCAL_MEMORY_BYTES: int.from_bytes(limits[216:220], "little"),
        DeviceAttr.MAX_THREADS_PER_BLOCK: invocations,
        DeviceAttr.MAX_BLOCK_DIMENSIONS: tuple(min(each, invocations) for each in extents),
        DeviceAttr.IMAGE_PITCH_BYTES: struct.unpack_from("<Q", limits, 488)[0],
        DeviceAttr.MEMORY_CLOCK_HZ: None,
    }
    assert {attr: plain.attr(attr) for attr in wanted} == wanted
    assert plain.attr(DeviceAttr.SUBGROUP_SIZE) == lb.Target.from_device(plain).options["subgroup-size"]


def test_an_index_there_is_not(plain: Device) -> None:
    api = api_of(plain)
    with pytest.raises(DeviceIndexError, match=f"legal indices: 0 to {api.count() - 1}"):
        api.memory_kinds(99)
    with pytest.raises(DeviceIndexError):
        api.memory_kinds(-1)


def test_options(plain: Device) -> None:
    api = api_of(plain)
    with pytest.raises(InputError, match="legal: coherent and unified"):
        api.open(0, fast=True)
    with pytest.raises(InputError, match="legal: coherent and unified"):
        api.open(0, coherent="no")
    api.open(0, coherent=False)
    assert not api.memory_kinds(0)["global"].coherent
    api.reset(0)
    assert api.memory_kinds(0)["global"].coherent == plain.memory_kind().coherent


def test_a_device_that_does_no_work_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    from landbridge.devices.vulkan import probe as probe_module

    first_instance("vulkan")
    monkeypatch.setattr(probe_module, "copy_to_host", lambda *arguments: None)
    with pytest.raises(DeviceError, match="bytes copied on it come back changed; update the driver"):
        VulkanDeviceAPI().memory_kinds(0)


def test_a_lost_device(monkeypatch: pytest.MonkeyPatch) -> None:
    api = make_api(unified=False)  # so that copies are the device's
    device = use_api(api, monkeypatch)
    retained = lb.asarray(np.arange(4), device=device, copy=True)
    api.logical(0).calls.replace("vkQueueSubmit", lambda *arguments: -4)
    with pytest.raises(DeviceLostError, match="VK_ERROR_DEVICE_LOST"):
        retained.copy()
    with pytest.raises(DeviceLostError, match=r"is lost.*the last work submitted was .*copy.*reopen\(\)"):
        lb.empty((4,), dtype="int8", device=device)
    del retained
    t = lb.asarray(np.arange(4), device=device.reopen(), copy=True)
    assert (back(t) == np.arange(4)).all()
    api.close(0)


def test_what_was_made_before_a_close_is_lost(plain: Device) -> None:
    api = api_of(plain)
    space, stream = api.alloc_data_space(0, 64, 1, "global", None), api.create_stream(0)
    event = api.record_event(0, stream)
    event.synchronize()
    api.close(0)
    with pytest.raises(DeviceLostError):
        api.host_pointer(space)
    with pytest.raises(DeviceLostError):
        api.record_event(0, stream)
    assert event.query(), "what is known to be done needs no driver"
    api.free_data_space(space)  # nothing to do, and nothing that breaks


def test_exit_while_the_device_works(plain: Device) -> None:
    code = (
        "import numpy as np, landbridge as lb\n"
        "a = lb.asarray(np.zeros(1 << 22, np.float32), device='vulkan:0', copy=True)\n"
        "tensors = [a.storage.live_region]\n"
        "api = lb.device('vulkan:0').api\n"
        "b = lb.empty((1 << 22,), dtype='float32', device='vulkan:0')\n"
        "for _ in range(20): api.copy_data_from_to(a.storage.live_region, b.storage.live_region, 1 << 24, None, None)\n"
        "print('leaving')\n"
    )
    assert child(code) == "leaving\n"


def test_a_child_after_fork_is_reported(plain: Device) -> None:
    code = (
        "import os, warnings, landbridge as lb\nwarnings.simplefilter('ignore')\n"
        "t = lb.empty((4,), dtype='int8', device='vulkan:0')\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try:\n        lb.empty((4,), dtype='int8', device='vulkan:0')\n"
        "    except lb.errors.ForkedDeviceError:\n        os.write(1, b'told ')\n"
        "    raise SystemExit\n"
        "os.waitpid(pid, 0)\nt.copy(); os.write(1, b'and the parent goes on')\n"
    )
    assert child(code) == "told and the parent goes on"
