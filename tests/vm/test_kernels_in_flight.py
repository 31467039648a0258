"""Memory that its owner lends to a device comes back when somebody waits for the device, and whole."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Event, Region
from landbridge.device.protocols import AccessMode
from landbridge.errors import ContextLostError, DeviceLostError
from landbridge.executable.instructions import AllocStorage, AllocTensor, Call, Instruction, View
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.targets import Target
from landbridge.vm.kernels_in_flight import KernelsInFlight
from tests.memory.test_imports_behind_caches import KernelsAndImports, array
from tests.vm import programs
from tests.vm.lazy_kernels import IMAGE, N

X, Y, Z = 0, 1, 2  # the registers of input x, and of outputs y and z
X_THERE, Y_THERE = 10, 11


@pytest.fixture
def api() -> KernelsAndImports:
    return KernelsAndImports()


def session(api: KernelsAndImports, *instructions: Instruction) -> lb.Session:
    """A Session of a program with input x and outputs y and z, arrays of the host, of which the device imports two."""
    views = (View(X_THERE, X, 0, (N,), "float32", "x there", 1), View(Y_THERE, Y, 0, (N,), "float32", "y there", 1))
    exe = programs.executable({"x": (N,)}, {"y": (N,), "z": (N,)}, (*views, *instructions))
    target = Target({"kind": "llvm", "memory": [api.memory_kinds(0)["global"]]}).to_json()
    exe = replace(
        exe,
        vdevices=(VDevice("cpu", 0, "global"), VDevice("dev", 1, "global")),
        modules=(exe.modules[0], ModuleImage(target, IMAGE)),
        metadata={"on_mismatch": "error"},
    )
    return lb.Session(exe, devices={"cpu": "cpu", "dev": Device(api, 0)}, num_threads=1)


def bound(s: lb.Session) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrays of x, y and z, which the session uses in place."""
    x, y, z = array(1, N), array(0, N), array(0, N)
    s.set_input_zero_copy("x", x)
    s.set_output_zero_copy("y", y)
    s.set_output_zero_copy("z", z)
    return x, y, z


def imported(api: KernelsAndImports, *arrays: np.ndarray) -> list[lb.Tensor]:
    """The arrays as Tensors of the device: while there are such, what it wrote is not written back with the import."""
    return [lb.asarray(each, device=Device(api, 0), copy=False) for each in arrays]


def by_device(source: int, target: int) -> Call:
    return Call(1, "double", (source, target), 1, vdevice=1)


def by_cpu(source: int, target: int) -> Call:
    return Call(0, "double", (source, target), N)


def test_the_cpu_goes_on_while_a_device_writes_memory_of_the_host(api):
    """The device does nothing before it is released; the CPU's part is done by then."""
    s = session(api, by_device(X_THERE, Y_THERE), by_cpu(X, Z))
    x, y, z = bound(s)
    for step in range(1, 4):
        x[:] = step
        s.run()
        assert (y == 2 * step).all() and (z == 2 * step).all()
    z[:] = 0
    hold = api.hold(0)
    run = s.run_async()
    end = time.monotonic() + 30
    while not (z == 6).all() and time.monotonic() < end:
        time.sleep(1e-3)
    was_done = run.done()
    hold.release()
    run.wait(30)
    assert not was_done and (z == 6).all()


def test_what_the_cpu_reads_of_it_is_there(api):
    s = session(api, by_device(X_THERE, Y_THERE), by_cpu(Y, Z))
    x, y, z = bound(s)
    others = imported(api, x, y)
    for step in range(1, 4):
        x[:] = step
        s.run()
        assert (y == 2 * step).all() and (z == 4 * step).all()
    assert len(others) == 2


class Quick(KernelsAndImports):
    """A device that has done all it was given when the host has called a barrier."""

    def begin_host_access_after(self, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]) -> None:
        super().begin_host_access_after(region, nbytes, mode, events)
        self._instances[0].queue.finish_all()


def test_memory_that_is_written_twice_comes_back_once_both_are_done():
    """Two kernels in flight write ``y``; the CPU waits for what the first also wrote, and a third reads the second's.

    What the owner has of ``y`` meanwhile must not be written over what the second kernel wrote.
    """
    api = Quick()
    names = ("2 x", "there", "4 x there")
    s = session(
        api,
        AllocStorage(12, 64 * 3, 1, 64),
        *(AllocTensor(13 + n, 12, 64 * n, (N,), "float32", name) for n, name in enumerate(names)),
        by_device(X_THERE, Y_THERE),
        by_device(X_THERE, 13),
        by_device(X_THERE, 14),
        by_device(14, Y_THERE),
        View(16, 13, 0, (N,), "float32", "2 x here", 0),
        by_cpu(16, Z),
        View(17, Z, 0, (N,), "float32", "z there", 1),
        by_device(17, 15),
        by_device(Y_THERE, 14),
        by_device(14, Y_THERE),
    )
    x, y, z = bound(s)
    others = imported(api, y, z)
    for step in range(1, 4):
        x[:] = step
        s.run()
        assert (y == 16 * step).all() and (z == 4 * step).all()
    assert len(others) == 2


class _Lost:
    """An event of a device that tells the cause of its loss once, and afterwards only that it is gone."""

    def __init__(self, causes: list[DeviceLostError]) -> None:
        self._causes = causes

    def query(self) -> bool:
        return False

    def synchronize(self, timeout: float | None = None) -> bool:
        raise self._causes.pop(0) if len(self._causes) > 1 else self._causes[0]


def test_the_first_report_of_a_loss_is_what_the_caller_sees(api):
    device = Device(api, 0)
    causes = [ContextLostError("a job took too long"), DeviceLostError("no such device")]
    flying = KernelsInFlight(device, None)
    for name in ("first", "second"):
        flying.add(name, _Lost(causes))
    with pytest.raises(ContextLostError, match="a job took too long"):
        flying.wait()
    assert device.is_lost
