"""Pipeline caches: what one process's driver compiled, the next one's need not."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.devices.vulkan import pipeline_cache
from landbridge.devices.vulkan.logical_device import LogicalDevice
from tests.devices.vulkan.conftest import make_api, use_api
from tests.devices.vulkan.shaders import SAXPY, assembled
from tests.devices.vulkan.test_modules import _BLOCK, _COUNT, _GRID, api_of, back, floats, region
from tests.selection.installed import missing

#: RADV compiles without an AMD GPU for one that this variable names, on a device that runs nothing.
RADV = {"RADV_FORCE_FAMILY": "navi10", "MESA_SHADER_CACHE_DISABLE": "true"}
#: A process that makes the pipelines of the modules in its arguments, and counts those that the driver compiles: those
#: that it does not create under VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT.
RADV_PROCESS = """
import os, sys
from pathlib import Path
from landbridge.devices.vulkan import calls, logical_device
from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.devices.vulkan.instance import VulkanInstance
from landbridge.devices.vulkan.modules import VulkanModule
instance = VulkanInstance()
found = [device for device in instance.devices if "RADV" in device.name]
if not found:
    print("no RADV")
    raise SystemExit
features = logical_device._FEATURES & found[0].features
handle = logical_device._open(instance, found[0], features, ())
device = DriverObjects("vulkan:0", found[0], handle, calls.of_device(instance.calls, handle))
device.features = features
compiles = []
def create(driver, cache, count, request, allocator, created):
    request._obj.flags = 0x100
    result = whole(driver, cache, count, request, allocator, created)
    if result:
        assert result == 1000297000, result  # VK_PIPELINE_COMPILE_REQUIRED
        compiles.append("")
        request._obj.flags = 0
        result = whole(driver, cache, count, request, allocator, created)
    return result
whole = device.calls.replace("vkCreateComputePipelines", create)
for file in sys.argv[1:]:
    module = VulkanModule(device, Path(file).read_bytes())
    for name in module.facts.entry_points:
        module.kernel(name)
    module.cache.write()
print(len(compiles), flush=True)
os._exit(0)  # the driver fails when such a device ends
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files of this test."""
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Driver:
    """A driver whose caches have ``data`` after their header. ``given`` is what each cache was created of."""

    def __init__(self, device: LogicalDevice) -> None:
        self.given: list[bytes] = []
        self.data = b"compiled"
        self.refuses = False
        self._physical = device.physical
        self._create = device.calls.replace("vkCreatePipelineCache", self.create)
        device.calls.replace("vkGetPipelineCacheData", self.get)

    @property
    def header(self) -> bytes:
        found = self._physical
        return pipeline_cache._HEADER.pack(32, 1, found.vendor_id, found.device_id, found.cache_uuid)

    def create(self, device: int, request: Any, allocator: None, handle: Any) -> int:
        info = request._obj
        self.given.append(ctypes.string_at(info.pInitialData, info.initialDataSize) if info.initialDataSize else b"")
        if self.refuses and self.given[-1]:
            return -3
        info.initialDataSize, info.pInitialData = 0, None
        return int(self._create(device, request, allocator, handle))

    def get(self, device: int, cache: int, size: Any, content: Any) -> int:
        whole = self.header + self.data
        if content is not None:
            assert size._obj.value >= len(whole)
            ctypes.memmove(content, whole, len(whole))
        size._obj.value = len(whole)
        return 0


@pytest.fixture
def driver(plain: Device) -> Driver:
    return Driver(api_of(plain).logical(0))


def launch(device: Device, module: object) -> None:
    x, y = floats(device, np.arange(_COUNT)), floats(device, np.ones(_COUNT))
    api_of(device).launch(module, "saxpy", _GRID, _BLOCK, [region(x), region(y), 0.5], None)
    assert (back(y) == 1 + 0.5 * np.arange(_COUNT, dtype=np.float32)).all()


def load(device: Device) -> object:
    return api_of(device).load_module(0, assembled(SAXPY), "spirv")


def entries(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.glob("*.driver")]


def test_a_pipeline_cache_is_written_once_nothing_was_added(
    plain: Device, folder: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load(plain)
    launch(plain, module)
    launch(plain, module)
    assert not entries(folder), "it is written while pipelines are made"
    monkeypatch.setattr(pipeline_cache, "_QUIET", 0.0)
    launch(plain, module)
    (content,) = entries(folder)
    assert content.endswith(driver.header + b"compiled")
    driver.data = b"more"
    launch(plain, module)
    assert entries(folder) == [content], "it is written although nothing was added"


def test_the_next_module_is_given_what_was_written(plain: Device, folder: Path, driver: Driver) -> None:
    module = load(plain)
    launch(plain, module)
    del module
    gc.collect()
    api_of(plain).logical(0).collect()
    assert len(entries(folder)) == 1
    launch(plain, load(plain))
    assert driver.given == [b"", driver.header + b"compiled"]


@pytest.mark.parametrize("collected", [False, True])
def test_it_is_written_when_the_device_ends(folder: Path, monkeypatch: pytest.MonkeyPatch, *, collected: bool) -> None:
    api = make_api()
    device = use_api(api, monkeypatch)
    Driver(api.logical(0))
    module = load(device)
    launch(device, module)
    if collected:
        del module
        gc.collect()
    api.close(0)
    assert len(entries(folder)) == 1


def test_a_lost_device_is_asked_for_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = make_api()
    device = use_api(api, monkeypatch)
    driver = Driver(api.logical(0))
    module = load(device)
    launch(device, module)
    api.logical(0).calls.replace("vkGetPipelineCacheData", lambda *_: pytest.fail("a lost device was asked"))
    api.logical(0).calls.replace("vkDeviceWaitIdle", lambda *_: -4)
    api.close(0)
    assert driver.given == [b""] and not entries(folder)


def test_a_module_that_launched_nothing_writes_nothing(plain: Device, folder: Path, driver: Driver) -> None:
    load(plain)
    gc.collect()
    api_of(plain).logical(0).collect()
    assert driver.given == [b""] and not entries(folder)


def test_the_same_again_is_not_written_again(plain: Device, folder: Path, driver: Driver) -> None:
    inodes = []
    for driver.data in (b"compiled", b"compiled", b"compiled, and more"):
        module = load(plain)
        launch(plain, module)
        del module
        gc.collect()
        api_of(plain).logical(0).collect()
        (file,) = folder.glob("*.driver")
        inodes.append(file.stat().st_ino)
    assert inodes[0] == inodes[1] != inodes[2]
    assert driver.given[2] == driver.header + b"compiled"
    assert entries(folder)[0].endswith(b"compiled, and more")


@pytest.mark.parametrize("at", [4, 8, 12, 16, 31, "short"])
def test_a_header_of_another_driver_is_not_passed_on(
    plain: Device, folder: Path, driver: Driver, at: int | str
) -> None:
    module = load(plain)
    cache = module.cache  # type: ignore[attr-defined]
    content = bytearray(driver.header + b"compiled")
    if isinstance(at, int):
        content[at] ^= 255
    else:
        del content[20:]
    cache._file.write(pipeline_cache.DriverBinary({}, bytes(content)))
    assert len(entries(folder)) == 1
    launch(plain, load(plain))
    assert driver.given == [b"", b""] and not entries(folder)


def test_a_driver_that_refuses_gets_an_empty_one(plain: Device, folder: Path, driver: Driver) -> None:
    module = load(plain)
    launch(plain, module)
    module.cache.write()  # type: ignore[attr-defined]
    driver.refuses = True
    launch(plain, load(plain))
    assert [bool(given) for given in driver.given] == [False, True, False] and not entries(folder)


def test_a_header_alone_is_no_file(plain: Device, folder: Path, driver: Driver) -> None:
    driver.data = b""
    module = load(plain)
    launch(plain, module)
    module.cache.write()  # type: ignore[attr-defined]
    assert not entries(folder)


@pytest.mark.parametrize("answer", [5, -1])
def test_a_driver_that_gives_nothing(plain: Device, folder: Path, driver: Driver, answer: int) -> None:
    api_of(plain).logical(0).calls.replace("vkGetPipelineCacheData", lambda *_: answer)
    module = load(plain)
    launch(plain, module)
    module.cache.write()  # type: ignore[attr-defined]
    assert not entries(folder)


def test_without_a_folder_there_is_no_cache(plain: Device, driver: Driver) -> None:
    module = load(plain)
    launch(plain, module)
    module.cache.write()  # type: ignore[attr-defined]
    assert module.cache.handle == 0 and driver.given == []  # type: ignore[attr-defined]


def test_the_driver_of_this_machine(plain: Device, folder: Path) -> None:
    """With no replaced functions: two processes' worth of modules, whatever the driver gives of its cache."""
    for _ in range(2):
        module = load(plain)
        launch(plain, module)
        module.cache.write()  # type: ignore[attr-defined]
        assert module.cache.handle  # type: ignore[attr-defined]
        for content in entries(folder):
            assert len(content) > 32


def radv(*files: Path) -> int:
    """The number of pipelines that the driver compiled in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", RADV_PROCESS, *files],
        env={**os.environ, **RADV},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if done.stdout.strip() == "no RADV":
        missing("RADV, the Vulkan driver of Mesa for AMD", "debian")
    return int(done.stdout)


def test_a_driver_that_compiles_at_creation_compiles_nothing_twice(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "saxpy.spv"
    file.write_bytes(assembled(SAXPY))
    assert [radv(file), radv(file)] == [1, 0]
    (entry,) = folder.glob("*.driver")
    content = entry.read_bytes()
    entry.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert [radv(file), radv(file)] == [1, 0]
    other = tmp_path / "other.spv"
    other.write_bytes(assembled(SAXPY.replace('"saxpy"', '"axpy"').replace("LocalSize 64", "LocalSize 32")))
    assert [radv(other), radv(other, file)] == [1, 0]


def test_a_model_on_a_driver_that_compiles_at_creation(folder: Path, tmp_path: Path, plain: Device) -> None:
    from tests.whole_models.small_models import add

    executable = lb.compile(add(), "vulkan")
    file = tmp_path / "add.spv"
    (image,) = (module.image for module in executable.modules if hasattr(module.image, "format"))
    file.write_bytes(image.code)
    for written in folder.iterdir():
        written.unlink()
    first = radv(file)
    assert first and radv(file) == 0
