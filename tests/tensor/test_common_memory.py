"""Memory for several devices: each uses it in place, and the one that costs least is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import InputError, ZeroCopyError
from landbridge.memory_kind import MemoryKind
from landbridge.testing.sim_board import SimBoardDeviceAPI
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.devices.present import first_instance
from tests.frontend.models import model, value

SHAPE = (4, 100)
COMPUTING = ("cpu", "opencl", "vulkan")
X = np.linspace(-1, 1, 400, dtype=np.float32).reshape(SHAPE)


@pytest.fixture(scope="module")
def programs() -> Callable[[Device], lb.Executable]:
    """A negation for each device, compiled once."""
    ends = [value(name, list(SHAPE), TensorProto.FLOAT) for name in "xy"]
    negation = model([helper.make_node("Neg", ["x"], ["y"])], ends[:1], ends[1:])
    made: dict[Device, lb.Executable] = {}

    def program_of(device: Device) -> lb.Executable:
        if device not in made:
            made[device] = lb.compile(negation, target=lb.Target.from_device(device))
        return made[device]

    return program_of


def common(devices: Sequence[Device | str], **requested: Any) -> lb.Tensor:
    return lb.empty(SHAPE, dtype="float32", device=devices, host_access="rw", **requested)


@pytest.mark.sample(3)
@pytest.mark.parametrize("names", [*combinations(COMPUTING, 2), COMPUTING, COMPUTING[::-1]], ids="+".join)
def test_each_computes_on_it_in_place(programs: Callable[[Device], lb.Executable], names: tuple[str, ...]) -> None:
    devices = [first_instance(name) for name in names]
    x, y = common(devices), common(devices)
    for iteration, device in enumerate(devices):
        session = lb.Session(programs(device), device=device)
        with lb.no_copies():
            with x.host_view("w") as array:
                array[:] = X + iteration
            session.set_input_zero_copy("x", x)
            session.set_output_zero_copy("y", y)
            session.run()
            with y.host_view("r") as array:
                np.testing.assert_array_equal(array, -(X + iteration))


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (("cpu", "opencl"), "opencl:0 global.svm"),
        (("opencl", "cpu"), "opencl:0 global.svm"),
        (("cpu", "vulkan"), "vulkan:0 global"),
        (("opencl", "vulkan"), "cpu:0 global"),
        (("cpu", "opencl", "vulkan"), "cpu:0 global"),
        (("cpu",), "cpu:0 global"),
    ],
)
def test_the_least_cost_is_taken(names: tuple[str, ...], taken: str) -> None:
    devices = [first_instance(name) for name in names]
    if "opencl" in names and "global.svm" not in first_instance("opencl").memory_kinds:
        pytest.skip("this driver has no shared virtual memory")
    memory = common(devices)
    assert f"{memory.device} {memory.scope}" == taken


@pytest.mark.parametrize("api", [SimLazyDeviceAPI, SimBoardDeviceAPI])
def test_memory_of_a_simulated_device_serves_the_cpu(
    programs: Callable[[Device], lb.Executable], api: type[SimLazyDeviceAPI]
) -> None:
    device = Device(api(), 0)
    x, y = common(["cpu", device]), common([device, "cpu"])
    assert (x.device, x.scope, y.scope) == (device, "shared", "shared")
    session = lb.Session(programs(lb.device("cpu")))
    with lb.no_copies():
        np.asarray(x)[:] = X
        session.set_input_zero_copy("x", x)
        session.set_output_zero_copy("y", y)
        session.run()
    inside = lb.empty(SHAPE, dtype="float32", device=device)
    with lb.ledger() as moves:
        inside.copy_from(y)  # the device's own engine reads it where it is
    assert [(move.source, move.destination, move.nbytes) for move in moves] == [(str(device), str(device), X.nbytes)]
    np.testing.assert_array_equal(np.asarray(inside.to_device("cpu")), -X)


def test_where_there_is_none_each_kind_says_why() -> None:
    lazy, board = Device(SimLazyDeviceAPI(), 0), Device(SimBoardDeviceAPI(), 1)
    with pytest.raises(ZeroCopyError) as raised:
        common([lazy, board, "cpu"])
    for reason in (
        "sim:lazy:0, sim:board:1, cpu:0 have no memory in common",
        "'shared' of sim:lazy:0: sim:board:1 imports memory of the host alone",
        "'cached' of sim:board:1: sim:lazy:0 imports no memory",
        "'global' of cpu:0: sim:lazy:0 imports no memory",
        "to_device",
    ):
        assert reason in str(raised.value)
    with pytest.raises(ZeroCopyError, match=r"'global' of cpu:0: sim:board:1 imports the memory of its own"):
        common([board, first_instance("vulkan")])


class Declared(SimLazyDeviceAPI):
    """``sim:lazy`` that states of its memory what a test says."""

    def __init__(self, *kinds: MemoryKind) -> None:
        super().__init__()
        self._kinds = {kind.scope: kind for kind in kinds}


def test_coherent_before_cached_past_its_caches_last() -> None:
    visible = replace(SimLazyDeviceAPI().memory_kinds(0)["shared"], scope="global")
    uncached = replace(visible, cached=False)
    barriers = replace(visible, scope="barriers", coherent=False, coherence_granule=64)
    for kinds, taken in (
        ((uncached, barriers), "barriers"),
        ((barriers, replace(uncached, scope="global")), "barriers"),
        ((uncached,), "global"),
        ((replace(visible, max_bytes=1024), barriers), "barriers"),  # the next one, where there is not enough
    ):
        assert common([Device(Declared(*kinds), 0)]).scope == taken
    coherent = replace(visible, scope="coherent")
    assert common([Device(Declared(uncached, barriers, coherent), 0)]).scope == "coherent"


def test_alignment_is_that_of_all_who_import() -> None:
    vulkan, opencl = first_instance("vulkan"), first_instance("opencl")
    memory = lb.empty(SHAPE, dtype="float32", device=[vulkan, opencl], alignment=16384)
    assert np.asarray(memory).ctypes.data % 16384 == 0
    assert np.asarray(common([vulkan, opencl])).ctypes.data % 4096 == 0
    assert lb.empty((0, 3), dtype="int8", device=[vulkan, opencl], host_access="rw").nbytes == 0


@pytest.mark.parametrize(
    ("requested", "output"),
    [
        ({"device": []}, "device is an empty list"),
        ({"device": ["cpu", "cpu"], "scope": "global"}, "scope given for 2 devices; give one device"),
        ({"device": ["cpu"], "axis_separators": [1]}, "axis_separators given for 1 devices"),
        ({"device": ["cpu"], "alignment": 3}, "alignment 3 is not legal"),
        ({"device": ["cpu"], "host_access": "wr"}, "host_access 'wr' is unknown"),
    ],
)
def test_what_is_not_legal(requested: dict[str, Any], output: str) -> None:
    with pytest.raises(InputError, match=output):
        lb.empty(SHAPE, dtype="float32", **requested)
