"""The registry: plugins that are really installed (a distribution on the path), and each way a name can be wrong."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import ClassVar

import pytest

import landbridge
from landbridge.device import registry
from landbridge.device.api import Device
from landbridge.errors import (
    DeviceError,
    DeviceIndexError,
    DeviceNameTakenError,
    DeviceTypeTakenError,
    DeviceVersionError,
    InputError,
    UnknownDeviceError,
)
from tests.device.queueing_device import QueueingDeviceAPI

PLUGIN = """
from tests.device.queueing_device import QueueingDeviceAPI

class Npu(QueueingDeviceAPI):
    name = "mynpu"

class Old(QueueingDeviceAPI):
    name = "old"
    api_version = 0

class Greedy(QueueingDeviceAPI):
    name = "greedy"
    device_type = 1

class Broken(QueueingDeviceAPI):
    name = "broken"
    def __init__(self):
        raise RuntimeError("no firmware")

class Absent(QueueingDeviceAPI):
    name = "absent"
    def count(self):
        return 0

class Watched(QueueingDeviceAPI):
    name = "watch"
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

class Watch:
    def wrap(self, inner):
        return Watched(inner)

watch = Watch()
"""


def install(folder: Path, distribution: str, module: str, text: str, points: dict[str, str]) -> None:
    """Put a distribution with entry points on disk, as an installer would."""
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {module}:{attribute}\n" for name, attribute in points.items())
    (info / "entry_points.txt").write_text(f"[landbridge.devices]\n{lines}")
    (folder / f"{module}.py").write_text(text)


@pytest.fixture
def fresh_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry that has read no plugins yet, and forgets them after the test."""
    monkeypatch.setattr(registry._plugins, "_installed", None)
    tables = (
        (registry._plugins, "_known"),
        (registry._plugins, "_registered"),
        (registry, "_types"),
        (registry, "_devices"),
    )
    for owner, table in tables:
        monkeypatch.setattr(owner, table, dict(getattr(owner, table)))


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_registry: None) -> None:
    names = {"mynpu": "Npu", "old": "Old", "greedy": "Greedy", "broken": "Broken", "absent": "Absent", "watch": "watch"}
    install(tmp_path / "a", "good-plugin", "lb_good_plugin", PLUGIN, {**names, "twice": "Npu"})
    install(tmp_path / "b", "bad-plugin", "lb_bad_plugin", "import nothing_of_this_name", {"bad": "X", "twice": "X"})
    monkeypatch.syspath_prepend(tmp_path / "a")
    monkeypatch.syspath_prepend(tmp_path / "b")


def test_cpu_is_there_without_reading_plugins(monkeypatch: pytest.MonkeyPatch, fresh_registry: None) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda group: pytest.fail("plugins were read"))
    monkeypatch.setattr(registry._plugins, "_known", {})
    monkeypatch.setattr(registry, "_types", {})
    monkeypatch.setattr(registry, "_devices", {})
    assert str(registry.device("cpu")) == "cpu:0"


def test_handles_are_equal(plugins: None) -> None:
    cpu = registry.device("cpu")
    assert (
        cpu == registry.device("cpu:0") == registry.device("cpu", 0) == registry.device(cpu) == landbridge.device("cpu")
    )
    assert registry.device("mynpu:1") != registry.device("mynpu") != cpu
    assert len({registry.device("mynpu:0"), registry.device("mynpu"), cpu}) == 2


def test_plugin(plugins: None) -> None:
    assert set(registry.names()) >= {"cpu", "mynpu", "bad", "twice"}
    npu = registry.device("mynpu", 1)
    assert isinstance(npu, Device)
    assert (npu.name, npu.index, repr(npu)) == ("mynpu", 1, "device('mynpu:1')")
    assert [str(d) for d in registry.devices("mynpu")] == ["mynpu:0", "mynpu:1"]
    code = registry.device_type(npu.api)
    assert code > 12  # above kDLExtDev
    assert registry.device_of_type(code, 1) == npu


def test_wrapper(plugins: None) -> None:
    wrapped = registry.device("watch(mynpu:1)")
    assert wrapped.api.inner == registry.device("mynpu:1")  # type: ignore[attr-defined]
    assert wrapped.index == 1
    with pytest.raises(UnknownDeviceError, match="wraps no other device"):
        registry.device("mynpu(cpu)")


def test_unknown_name_gives_the_nearest(plugins: None) -> None:
    with pytest.raises(UnknownDeviceError, match=r"unknown device 'mynpo' \(did you mean 'mynpu'\?\); known: .*cpu"):
        registry.device("mynpo")


def test_index_that_does_not_exist(plugins: None) -> None:
    with pytest.raises(DeviceIndexError, match="legal indices of 'mynpu': 0 to 1"):
        registry.device("mynpu:2")
    with pytest.raises(DeviceIndexError, match="no such hardware"):
        registry.device("absent")
    assert registry.devices("absent") == []


def test_name_taken(plugins: None) -> None:
    with pytest.raises(DeviceNameTakenError, match=r"lb_(good|bad)_plugin.* and by lb_(good|bad)_plugin"):
        registry.device("twice")
    registry.register(QueueingDeviceAPI())
    with pytest.raises(DeviceNameTakenError, match="'queueing'"):
        registry.register(QueueingDeviceAPI())
    registry.unregister("queueing")
    registry.register(QueueingDeviceAPI())


def test_type_taken(plugins: None) -> None:
    registry.device("cpu")
    with pytest.raises(DeviceTypeTakenError, match="claims the DLPack type 1, which device 'cpu' has; state"):
        registry.device("greedy")

    class Impostor(QueueingDeviceAPI):
        name: ClassVar[str] = "impostor"
        device_type: ClassVar[int | None] = 4

    with pytest.raises(DeviceTypeTakenError, match="'opencl'"):
        registry.register(Impostor())


def test_version(plugins: None) -> None:
    with pytest.raises(DeviceVersionError, match="DEVICE_API_VERSION 0"):
        registry.device("old")


def test_broken_plugins_break_only_themselves(plugins: None) -> None:
    with pytest.raises(DeviceError, match=r"bad-plugin, does not import.*nothing_of_this_name"):
        registry.device("bad")
    with pytest.raises(DeviceError, match="failed to start: RuntimeError: no firmware"):
        registry.device("broken")
    assert registry.device("mynpu").memory_kind().scope == "global"


def test_unknown_scope(plugins: None) -> None:
    npu = registry.device("mynpu")
    assert npu.memory_kind("") == npu.memory_kind("global")
    with pytest.raises(InputError, match="no memory scope 'vtcm'; legal: global, shared"):
        npu.memory_kind("vtcm")


def test_the_package_is_called_and_is_a_module() -> None:
    """``landbridge.device`` has both meanings, whichever of its modules was imported first."""
    code = (
        "import landbridge.device.api, landbridge as lb, sys, types\n"
        "assert lb.device is sys.modules['landbridge.device'] and isinstance(lb.device, types.ModuleType)\n"
        "assert lb.device.api is landbridge.device.api\n"
        "print(lb.device('cpu:0'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60)
    assert done.stdout.split() == ["cpu:0"]
