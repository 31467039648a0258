"""Programs of the driver: a later process has them from a file, and no driver compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest

from landbridge.device.api import Device
from landbridge.devices.driver_binaries import DriverBinary
from landbridge.devices.opencl import programs
from landbridge.errors import InputError

from .test_modules import SOURCE
from .transfers import back, filled, region

#: A process that launches a kernel with plain numbers, whose types the driver reports of source alone.
PROGRAM = """
import os, sys
import numpy as np
import landbridge as lb
from landbridge.devices.opencl import programs
from tests.devices.opencl.test_modules import SOURCE
from tests.devices.opencl.transfers import back, filled, region
compiles, whole = [], programs.compiled
programs.compiled = lambda *given: compiles.append("") or whole(*given)
device = lb.device("opencl:0")
module = device.api.load_module(0, SOURCE, "opencl-c", sys.argv[1])
def scaled():
    x = filled(device, np.arange(4))
    device.api.launch(module, "scale", (1, 1, 1), (4, 1, 1), (region(x), 2.5, 3), None)
    return back(x).tolist()
"""
RUN = PROGRAM + "assert scaled() == [0, 2.5, 5, 3]\nprint(len(compiles))"


@pytest.fixture(autouse=True)
def here(device: Device) -> None:
    """There is a device."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files of this test; the driver has none of its own."""
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("POCL_KERNEL_CACHE", "0")
    return tmp_path / "cache"


@pytest.fixture
def probes(device: Device) -> int:
    """The number of kernels that discovery builds: one a device."""
    return device.api.count()


@pytest.fixture
def at_launch(device: Device) -> None:
    """The driver compiles when a kernel is launched."""
    if not programs._compiles_at_launch(device.api._instance(0).device):
        pytest.skip("this driver has binaries when programs are built")


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The sources that the driver compiled."""
    done: list[str | None] = []
    whole = programs.compiled

    def counted(place: programs.Place, binary: bytes, source: str | None, options: str) -> cl.Program:
        done.append(source)
        return whole(place, binary, source, options)

    monkeypatch.setattr(programs, "compiled", counted)
    return done


@pytest.fixture
def at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``folder``, for a driver that has a binary when the program is built."""
    monkeypatch.setattr(programs, "_compiles_at_launch", lambda device: False)
    return folder


def process(code: str = RUN, options: str = "-DX", **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, options],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def entries(folder: Path) -> list[str]:
    return [file.name for file in folder.glob("*.driver")]


def scaled(device: Device, options: str = "") -> list[float]:
    module = device.api.load_module(device.index, SOURCE, "opencl-c", options)
    x = filled(device, np.arange(4))
    device.api.launch(module, "scale", (1, 1, 1), (4, 1, 1), (region(x), 2.5, 3), None)
    values: list[float] = back(x).tolist()
    return values


def test_the_second_process_compiles_nothing(folder: Path, probes: int) -> None:
    assert process() == str(probes + 1)
    first = entries(folder)
    assert process() == "0"
    assert process(options="-DY") == "1"
    assert len(first) == probes + 1 and set(first) < set(entries(folder)) and len(entries(folder)) == probes + 2


@pytest.mark.full
def test_the_second_process_runs_a_program(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "add.lbx"
    code = f"""
import sys
import numpy as np
import landbridge as lb
from landbridge.devices.opencl import programs
from tests.whole_models.small_models import add
compiles, whole = [], programs.compiled
programs.compiled = lambda *given: compiles.append("") or whole(*given)
if sys.argv[1] == "compile":
    lb.compile(add(), lb.Target.from_device(lb.device("opencl:0"))).save({str(file)!r})
    raise SystemExit
session = lb.Session(lb.load({str(file)!r}), device="opencl:0")
(y,) = session(lb.asarray(np.ones(64, np.float32), device="opencl:0"))
assert y.to_device("cpu").numpy().tolist() == list(range(1, 65))
print(len(compiles))
"""
    process(code, "compile")
    assert [process(code, "run") for _ in range(2)] == ["1", "0"]  # the probe's was in the first process


@pytest.mark.full
def test_processes_at_once(folder: Path, probes: int) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", RUN, "-DX"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    assert [(*child.communicate()[1:], child.returncode) for child in running] == [(b"", 0)] * 2
    assert len(entries(folder)) == probes + 1 and process() == "0"


def test_a_child_after_fork_writes_nothing(folder: Path, at_launch: None, probes: int) -> None:
    code = f"""
assert scaled() == [0, 2.5, 5, 3]
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print(len(os.listdir({str(folder)!r})))
"""
    assert process(PROGRAM + code) == str(probes)
    assert len(entries(folder)) == probes + 1


def test_what_was_never_launched_is_not_written(folder: Path, at_launch: None, probes: int) -> None:
    process(PROGRAM)
    assert len(entries(folder)) == probes


def test_a_driver_with_files_of_its_own_is_left_to_them(
    folder: Path, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    pocl, other = (SimpleNamespace(platform=SimpleNamespace(name=name)) for name in (programs._POCL, "another"))
    assert not programs.has_own_files(pocl)
    monkeypatch.setenv("POCL_KERNEL_CACHE", "1")
    assert programs.has_own_files(pocl) and not programs.has_own_files(other)
    monkeypatch.delenv("POCL_KERNEL_CACHE")
    assert programs.has_own_files(pocl)
    if device.api._instance(0).device.platform.name == programs._POCL:
        process()
        assert not entries(folder)


def test_a_driver_that_has_binaries_when_it_built(
    at_once: Path, device: Device, compiles: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scaled(device) == [0, 2.5, 5, 3]
    assert len(compiles) == 1 and len(entries(at_once)) == 1
    monkeypatch.setattr(programs, "_parameter", lambda *_: pytest.fail("a driver knows types of source alone"))
    assert scaled(device) == [0, 2.5, 5, 3]
    assert len(compiles) == 1
    restored = device.api.load_module(device.index, SOURCE, "opencl-c")
    assert restored.function("scale").scalars == (None, np.dtype("f4"), np.dtype("i4"))
    with pytest.raises(InputError, match="number of type int32"):
        device.api.launch(restored, "scale", (1, 1, 1), (4, 1, 1), (region(filled(device, [1])), 1.0, 1 << 40), None)


def test_other_options_are_compiled(at_once: Path, device: Device, compiles: list[str | None]) -> None:
    for options in ("", "-DX", "", "-DX"):
        assert scaled(device, options) == [0, 2.5, 5, 3]
    assert len(compiles) == 2


@pytest.mark.parametrize("damage", ["no binary", "other kernels", "other parameters"])
def test_a_binary_that_does_not_fit_is_compiled(
    at_once: Path, device: Device, compiles: list[str | None], damage: str
) -> None:
    scaled(device)
    words = " ".join(programs_options(device))
    file = programs._file(device.api._instance(0).device, SOURCE, SOURCE.decode(), words)
    assert file is not None
    found = file.read()
    assert found is not None
    types = found.facts["parameters"]
    wrong = {
        "no binary": DriverBinary(found.facts, b"no binary of a driver" * 100),
        "other kernels": DriverBinary({"parameters": {**types, "another": ["int"]}}, found.binary),
        "other parameters": DriverBinary({"parameters": {**types, "scale": ["int"]}}, found.binary),
    }
    file.write(wrong[damage])
    assert scaled(device) == [0, 2.5, 5, 3] and len(compiles) == 2
    assert file.read() is not None and scaled(device) == [0, 2.5, 5, 3] and len(compiles) == 2


def programs_options(device: Device) -> list[str]:
    from landbridge.devices.opencl.modules import source_options

    return source_options(device.api._instance(0).device)


def test_every_fact_of_the_driver_counts(at_once: Path) -> None:
    facts = {
        "name": "card", "vendor": "maker", "vendor_id": 1, "version": "OpenCL 3.0", "address_bits": 64,
        "driver_version": "1.2", "type": cl.device_type.GPU,
    }  # fmt: skip
    platform = {"name": "platform", "vendor": "maker", "version": "3.0"}

    def name(platform: dict[str, object], **device: object) -> str:
        found = SimpleNamespace(**device, platform=SimpleNamespace(**platform))
        file = programs._file(found, b"source", "source", "")  # type: ignore[arg-type]
        assert file is not None
        return file.name

    changes = [{**facts, key: "other"} for key in facts if key != "type"]
    changes.append({**facts, "type": cl.device_type.CPU})
    names = [name(platform, **facts), *(name(platform, **changed) for changed in changes)]
    names += [name({**platform, key: "other"}, **facts) for key in platform]
    assert len(set(names)) == len(names) == 1 + len(facts) + len(platform)


@pytest.mark.full
def test_nothing_is_written_where_it_is_turned_off(folder: Path, probes: int) -> None:
    assert [process(LANDBRIDGE_CACHE="0") for _ in range(2)] == [str(probes + 1)] * 2
    assert not folder.exists()
