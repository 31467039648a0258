"""One cache that programs of several devices continue, and a program of several: no byte crosses, barriers do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.device.api import Device, Region
from landbridge.device.protocols import AccessMode
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import Call, ToVDevice
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.memory import repeated_access
from landbridge.targets import Target
from landbridge.vm import host_access, kernel_step
from tests.session.state_histories import BATCH, CAPACITY, SHARED, SIZE, STEPS, grouped, read
from tests.session.test_aliases import model
from tests.session.test_states_on_devices import PLACES, attending, history_on, target_of
from tests.vm import programs
from tests.vm.lazy_kernels import IMAGE, N
from tests.vm.test_borrowed_memory import CACHED, StrictBoard

Array = np.ndarray[Any, Any]


@pytest.mark.sample(1)
@pytest.mark.parametrize("place", PLACES)
def test_a_prompt_on_a_device_and_steps_on_the_cpu(place: str) -> None:
    """Two Sessions, of programs for two devices, have one cache: what one adds, the other reads where it is."""
    device, history = PLACES[place], history_on(place, 5)
    state = history.new()
    caches = {name: lb.empty((BATCH, SHARED, CAPACITY, SIZE), dtype="float32", device=device) for name in ("k", "v")}
    sides = lb.Session(attending(place), device=device), lb.Session(lb.compile(grouped()))
    for cache in caches.values():
        with cache.host_view("w") as array:
            array.fill(0)
    for side in sides:
        for name, cache in caches.items():
            side.set_input_zero_copy(f"p{name}", cache)
            side.set_output_zero_copy(f"n{name}", cache)
    for number, side in enumerate((sides[0], sides[1], sides[1], sides[0])):
        feeds = history.feeds(STEPS, STEPS * number)
        for name, value in feeds.items():
            side.set_input(name, value)
        with lb.ledger() as moves:
            side.run()
        assert not [move for move in moves if not move.is_kernel or move.tensor in ("k_all", "v_h_all")]
        expected = history.session(feeds)["y"]
        np.testing.assert_allclose(read(side.get_output("y")), read(expected), rtol=1e-4, atol=1e-5)
    for name, cache in caches.items():
        filled = read(cache)[:, :, : state.length]
        np.testing.assert_array_equal(filled, read(state.tensors[f"p{name}"])[:, :, : state.length])


# ---- Barriers, counted


class Counted(StrictBoard):
    """``accesses`` are the modes of the host's barriers."""

    def __init__(self) -> None:
        super().__init__()
        self.accesses: list[AccessMode] = []

    def _open(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self.accesses.append(mode)
        super()._open(region, nbytes, mode)


def doubling(*, on_device: bool) -> Executable:
    """``y = 2 x``, of which y may be x."""
    exe = programs.executable({"x": (N,)}, {"y": (N,)}, (Call(0, "double", (0, 1), 1 if on_device else N),))
    exe = replace(exe, functions={"main": replace(exe.main, aliases=(("y", "x"),))})
    if not on_device:
        return exe
    target = Target({"kind": "llvm", "memory": [CACHED]}).to_json()
    return replace(exe, vdevices=(VDevice("dev", 0, "cached"),), modules=(ModuleImage(target, IMAGE),))


def alternated(board: Counted) -> tuple[float, list[int]]:
    """What a state of 1 is after eight runs, by the device and the CPU in turns, and how many barriers each had."""
    device = Device(board, 0)
    state = lb.empty((N,), dtype="float32", device=device, scope="cached")
    with state.host_view("w") as array:
        array.fill(1)
    sides = [
        lb.Session(doubling(on_device=True), devices={"dev": device}),
        lb.Session(doubling(on_device=False), num_threads=1),
    ]
    for side in sides:
        side.set_input_zero_copy("x", state)
        side.set_output_zero_copy("y", state)
    counts = []
    for number in range(8):
        board.accesses.clear()
        with lb.no_copies(kernels=True):
            sides[number % 2].run()
        counts.append(len(board.accesses))
    return float(read(state).max()), counts


def test_a_state_crosses_by_barriers_alone() -> None:
    board = Counted()
    assert alternated(board) == (256, [0, 1] * 4)
    assert board.early == [] and board.violations == []


def no_barrier(*_: object, **__: object) -> None: ...


#: What a runtime without the barrier of one side does instead.
MISSING: dict[str, Callable[[pytest.MonkeyPatch], object]] = {
    "before the host": lambda patch: patch.setattr(host_access, "begin_host_access", no_barrier),
    "before the device": lambda patch: [
        patch.setattr(module, name, no_barrier)
        for module, name in (
            (host_access, "end_host_access"),
            (kernel_step, "before_device_access"),
            (repeated_access, "before_device_access"),
        )
    ],
}


@pytest.mark.parametrize("side", MISSING)
def test_a_missing_barrier_is_found(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MISSING[side](monkeypatch)
    try:
        found, _ = alternated(Counted())
    except lb.LandbridgeError as error:
        assert "host and device both wrote" in str(error)
    else:
        assert found != 256


# ---- One program on several devices

ROWS, WIDTH = 24, 16


def cached() -> Any:
    """Rows put into a cache, and a product with all of it."""
    nodes = [
        helper.make_node("ScatterND", ["past", "at", "new"], ["present"], name="put"),
        helper.make_node("Transpose", ["new"], ["columns"], name="columns"),
        helper.make_node("MatMul", ["present", "columns"], ["scores"], name="scores"),
        helper.make_node("Tanh", ["scores"], ["y"], name="tanh"),
    ]
    inputs = {"past": (ROWS, WIDTH), "at": ((2, 1), TensorProto.INT64), "new": (2, WIDTH)}
    return model(nodes, inputs, {"y": (ROWS, 2), "present": (ROWS, WIDTH)})


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("on_cpu", ["put", "scores", "tanh", "none"])
def test_a_program_of_two_devices_keeps_its_cache_in_place(place: str, on_cpu: str) -> None:
    both = {"npu": target_of(place), "cpu": lb.Target("llvm")}
    exe = lb.compile(cached(), both, place={} if on_cpu == "none" else {on_cpu: "cpu"}, alias="auto")
    assert exe.main.aliases == (("present", "past"),)
    assert not [each for each in exe.main.instructions if isinstance(each, ToVDevice)]
    session = lb.Session(exe, devices={"npu": PLACES[place]})
    session.bind_state("present", "past")
    rng, expected = np.random.default_rng(1), np.zeros((ROWS, WIDTH), np.float32)
    for _ in range(4):
        at, new = rng.permutation(ROWS)[:2], rng.standard_normal((2, WIDTH)).astype(np.float32)
        expected[at] = new
        session.set_input("at", at[:, None])
        session.set_input("new", new)
        with lb.no_copies():
            session.run()
        np.testing.assert_allclose(read(session.get_output("y")), np.tanh(expected @ new.T), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(read(session.get_output("present")), expected)
