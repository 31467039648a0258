"""Memory of a Session's own for inputs and outputs: code uses it in place, and so does the host where that is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import BindError, HostViewError, InputError
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import Call
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.testing.sim_board import SimBoardDeviceAPI
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.devices.present import first_instance
from tests.frontend.models import model, value
from tests.passes.place.scopes import SHAPE, network
from tests.vm import programs
from tests.vm.lazy_kernels import IMAGE, N

HIDDEN = {"scope": "global", "host_access": "none", "coherent": False, "coherence_granule": 64, "offset_alignment": 64}
X = np.arange(N, dtype=np.float32)


@pytest.fixture(params=[SimLazyDeviceAPI, SimBoardDeviceAPI])
def hidden(request: pytest.FixtureRequest) -> Device:
    """A device whose memory ``global`` the host does not see, and ``shared`` it does."""
    return Device(request.param(), 0)


def doubling() -> Executable:
    target = lb.Target({"kind": "llvm", "memory": [HIDDEN]}).to_json()
    exe = programs.executable({"x": (N,)}, {"y": (N,)}, (Call(0, "double", (0, 1), 1),))
    return replace(exe, vdevices=(VDevice("dev", 0, "global"),), modules=(ModuleImage(target, IMAGE),))


@pytest.mark.parametrize("access", ["rw", "read_write"])
def test_the_host_sees_what_the_kernels_of_a_board_use(hidden: Device, access: Any) -> None:
    session = lb.Session(doubling(), device=hidden, host_access=access)
    with lb.no_copies():
        for iteration in range(2):
            with session.get_input("x").host_view("w") as array:
                array[:] = X + iteration
            session.run()
            with session.get_output(0).host_view("r") as array:
                np.testing.assert_array_equal(array, 2 * (X + iteration))
    assert (session.get_input("x").scope, session.get_output(0).scope) == ("shared", "shared")
    planned = {memory.scope: (memory.input_bytes, memory.output_bytes) for memory in session.planned_memory}
    assert planned == {"global": (0, 0), "shared": (64, 64)}


def test_a_call_returns_what_the_host_sees(hidden: Device) -> None:
    session = lb.Session(doubling(), device=hidden, host_access="r")
    x = lb.empty((N,), dtype="float32", device=hidden, host_access="rw")
    np.asarray(x)[:] = X
    with lb.no_copies():
        (y,) = session(x)
        np.testing.assert_array_equal(np.asarray(y), 2 * X)


def test_unasked_it_is_in_the_devices_own_memory(hidden: Device) -> None:
    session = lb.Session(doubling(), device=hidden)
    session.set_input("x", X)
    assert session.get_input("x").scope == "global"
    with pytest.raises(HostViewError):
        np.asarray(session.get_input("x"))


def test_what_no_memory_gives_is_reported_when_it_is_bound() -> None:
    api = SimLazyDeviceAPI()
    api._kinds = {"global": api._kinds["global"]}
    with pytest.raises(
        BindError, match=r"memory for inputs and outputs: sim:lazy:0 .*'global' of cpu:0: sim:lazy:0 imp"
    ):
        lb.Session(doubling(), device=Device(api, 0), host_access="rw")
    with pytest.raises(InputError, match="host_access 'wr' is unknown"):
        lb.Session(doubling(), device=Device(api, 0), host_access="wr")  # type: ignore[arg-type]


@pytest.fixture(params=["opencl", "vulkan"])
def importing(request: pytest.FixtureRequest) -> Device:
    return first_instance(request.param)


@cache
def mixed(device: Device, first: str) -> Executable:
    """Nodes on both; the first has inputs and outputs."""
    targets = {"npu": lb.Target.from_device(device), "cpu": lb.Target("llvm")}
    names = sorted(targets, key=lambda name: name != first)
    return lb.compile(network(), {name: targets[name] for name in names}, place={"[ac]*": names[1]})


FRAME = np.random.default_rng(1).standard_normal(SHAPE, dtype=np.float32)


@pytest.mark.sample(3)
@pytest.mark.parametrize("first", ["npu", "cpu"])
@pytest.mark.parametrize("access", [None, "rw"])
def test_a_device_and_the_cpu_use_it_in_place(importing: Device, first: str, access: Any) -> None:
    session = lb.Session(mixed(importing, first), devices={"npu": importing, "cpu": "cpu"}, host_access=access)
    with lb.no_copies():
        with session.get_input("x").host_view("w") as array:
            array[:] = FRAME
        session.run()
        with session.get_output(0).host_view("r") as array:
            found = array.copy()
    (expected,) = lb.Session(lb.compile(network()))(FRAME)
    np.testing.assert_allclose(found, np.asarray(expected), atol=20 * np.finfo(np.float32).eps)


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """OpenCL with barriers for whole granules of 1024 bytes."""
    device = first_instance("opencl")
    kind = replace(device.memory_kind(), coherence_granule=1024)
    monkeypatch.setattr(device, "_kinds", {**device.memory_kinds, "global": kind})
    yield device


@pytest.mark.parametrize("how", ["run", "call"])
def test_it_is_whole_granules_of_every_device_that_imports_it(coarse: Device, how: str) -> None:
    shape = (3, 100)
    ends = [value(name, list(shape), TensorProto.FLOAT) for name in "xy"]
    proto = model([helper.make_node("Neg", ["x"], ["y"], name="neg")], ends[:1], ends[1:])
    exe = lb.compile(proto, {"cpu": "llvm", "npu": lb.Target.from_device(coarse)}, place={"neg": "npu"})
    session = lb.Session(exe, devices={"npu": coarse, "cpu": "cpu"})
    x = np.linspace(-1, 1, 300, dtype=np.float32).reshape(shape)
    neighbour = lb.empty(3, dtype="float32", device="cpu")  # which nothing of a granule may be
    with lb.no_copies():
        np.asarray(session.get_input("x"))[:] = x
        session.run()
        found = session.get_output(0) if how == "run" else session(session.get_input("x"))[0]
        np.testing.assert_array_equal(np.asarray(found), -x)
    for memory in (session.get_input("x"), found):
        assert (np.asarray(memory).ctypes.data % 1024, memory.storage.reserved) == (0, 2048)
    del neighbour
