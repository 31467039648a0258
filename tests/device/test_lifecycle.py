"""Devices with a life: opened first and once, with options that are kept, begun anew, and closed at exit."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region, Space
from landbridge.device.protocols import AccessMode
from landbridge.device.registry import register, unregister
from landbridge.errors import DeviceError, DeviceLostError, InputError, UnsupportedError
from landbridge.memory_kind import MemoryKind
from tests.device.queueing_device import QueueingDeviceAPI
from tests.whole_models.small_models import add


class Flashed(QueueingDeviceAPI):
    """Must be opened with a bitstream; its coherent memory ``shared`` is used again by the next life."""

    name: ClassVar[str] = "flashed"

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []
        self.broken = False
        self.up: set[int] = set()

    def open(self, index: int, *, bitstream: str = "factory") -> None:
        self.log.append(f"open {index} {bitstream}")
        if self.broken:
            raise OSError("no such device")
        assert index not in self.up
        self.up.add(index)

    def close(self, index: int) -> None:
        if index in self.up:
            self.log.append(f"close {index}")
            self.up.discard(index)

    def reset(self, index: int) -> None:
        self.log.append(f"reset {index}")

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        assert index in self.up
        kinds = super().memory_kinds(index)
        return dict(kinds) | {"shared": replace(kinds["shared"], coherent=True, coherence_granule=1)}

    def host_pointer(self, space: Space) -> int:
        return ctypes.addressof(self.buffers[space.handle])

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        pass

    end_host_access = begin_host_access

    def free_data_space(self, space: Space) -> None:
        self.log.append("free")
        super().free_data_space(space)


@pytest.fixture
def api() -> Iterator[Flashed]:
    made = Flashed()
    register(made)
    yield made
    unregister("flashed")


def test_open_comes_first_and_once(api: Flashed) -> None:
    npu = lb.device("flashed", bitstream="a.bit")
    assert npu.memory_kind("shared").coherent
    assert lb.device("flashed:0") == npu == lb.device("flashed:0", bitstream="a.bit")
    lb.empty(4, dtype="int8", device="flashed:0")
    assert [entry for entry in api.log if entry != "free"] == ["open 0 a.bit"]
    lb.empty(4, dtype="int8", device=Device(api, 1))  # a handle that was made by hand
    assert "open 1 factory" in api.log


def test_options_are_retained_over_reopen_and_reset(api: Flashed) -> None:
    npu = lb.device("flashed", bitstream="a.bit")
    again = npu.reopen()
    assert again is not npu and npu.is_lost and not again.is_lost
    again.reset().reopen(bitstream="b.bit").reopen()
    opened = [
        "open 0 a.bit",
        "close 0",
        "open 0 a.bit",
        "reset 0",
        "close 0",
        "open 0 b.bit",
        "close 0",
        "open 0 b.bit",
    ]
    assert api.log == opened


def test_other_options_while_open(api: Flashed) -> None:
    lb.device("flashed", bitstream="a.bit")
    with pytest.raises(InputError, match=r"open with bitstream='a.bit', and bitstream='b.bit' was requested.*reopen"):
        lb.device("flashed", bitstream="b.bit")
    assert api.log == ["open 0 a.bit"]


def test_a_device_that_takes_no_options(api: Flashed) -> None:
    register(QueueingDeviceAPI())
    try:
        with pytest.raises(InputError, match=r"queueing:0 takes no options, and bitstream='a.bit' was given"):
            lb.device("queueing", bitstream="a.bit")
        with pytest.raises(UnsupportedError, match="queueing:0 cannot be reset"):
            lb.device("queueing").reset()
    finally:
        unregister("queueing")
    with pytest.raises(InputError, match=r"flashed:0 cannot be opened with speed=3: .*unexpected keyword"):
        lb.device("flashed", speed=3)


def test_a_device_that_does_not_come_up(api: Flashed) -> None:
    api.broken = True
    for _ in range(2):
        with pytest.raises(DeviceError, match=r"flashed:0 failed to open with bitstream='a.bit': no such device"):
            lb.device("flashed", bitstream="a.bit")
    api.broken = False
    npu = lb.device("flashed", bitstream="b.bit")
    api.broken = True
    with pytest.raises(DeviceError, match=r"failed to open with bitstream='b.bit'"):
        npu.reopen()
    api.broken = False
    assert not lb.device("flashed").is_lost and api.log[-1] == "open 0 b.bit"


def test_options_that_are_refused_are_not_retained(api: Flashed) -> None:
    npu = lb.device("flashed", bitstream="a.bit")
    with pytest.raises(InputError, match="clock"):
        npu.reopen(clock=5)
    assert lb.device("flashed").reopen() == lb.device("flashed")
    assert api.log == ["open 0 a.bit", "close 0", "open 0 a.bit", "close 0", "open 0 a.bit"]


def test_old_tensors_do_not_read_new_bytes(api: Flashed) -> None:
    npu = lb.device("flashed")
    old = lb.empty(4, dtype="int8", device=npu, scope="shared")
    with old.host_view("w") as view:
        view[:] = 1
    del view
    again = npu.reopen()
    for use in (
        lambda: old.copy(),
        lambda: np.asarray(old),
        lambda: old.host_view("r").__enter__(),
        lambda: old.to_device("cpu"),
        lambda: lb.empty(4, dtype="int8", device=npu),
    ):
        with pytest.raises(DeviceLostError, match=r"flashed:0 is lost \(it was reopened\)"):
            use()
    api.log.clear()
    old.storage.free()
    assert api.log == []  # its memory went when the device was closed
    assert np.asarray(lb.asarray(np.arange(4), device=again).to_device("cpu")).tolist() == [0, 1, 2, 3]


def test_runs_on_old_tensors(api: Flashed) -> None:
    program = lb.compile(add())
    program = replace(program, vdevices=(replace(program.vdevices[0], scope="shared"),))
    npu = lb.device("flashed")
    s = lb.Session(program, device=npu, num_threads=1)
    for spec in s.inputs:
        s.set_input(spec.name, np.zeros(spec.shape, spec.dtype))
    s.run()
    npu.reopen()
    for run in (s.run, lambda: s.run_async().wait(30)):
        with pytest.raises(DeviceLostError, match="it was reopened"):
            run()


def test_reset(api: Flashed) -> None:
    npu = lb.device("flashed")
    old = lb.asarray(np.arange(4), device=npu)
    again = npu.reset()
    assert api.log == ["open 0 factory", "reset 0"]
    assert npu.is_lost and not again.is_lost and lb.device("flashed:0") == again
    with pytest.raises(DeviceLostError, match="it was reset"):
        old.copy()
    with pytest.raises(DeviceLostError):
        npu.reset()


_EXITS = """
import atexit, os, sys
import numpy as np
import landbridge as lb
from landbridge.device.registry import register
from tests.device.test_lifecycle import Flashed

class Tells(Flashed):
    def close(self, index):
        print("closed", index, "modules there:", np.arange(3).sum())

    def free_data_space(self, space):
        print("freed after close")

register(Tells())
npu = lb.device("flashed:1")
kept = lb.empty(4, dtype="int8", device=npu)
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
print("end")
"""


def test_close_at_exit() -> None:
    done = subprocess.run([sys.executable, "-c", _EXITS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["end", "closed 1 modules there: 3"]  # the child closed nothing
