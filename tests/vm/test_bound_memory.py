"""One memory bound to an input and an output: steps on it follow each other, and it has one barrier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region
from landbridge.device.protocols import AccessMode
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import AllocStorage, AllocTensor, Call, View
from landbridge.executable.parts import Function, ModuleImage, VDevice
from landbridge.targets import Target
from landbridge.vm.bound_memory import BoundBytes, is_one_memory, joined
from tests.vm import programs
from tests.vm.lazy_kernels import IMAGE, N
from tests.vm.test_borrowed_memory import CACHED, StrictBoard


class CountingBoard(StrictBoard):
    """``accesses`` are the barriers of the host, with their modes."""

    def __init__(self) -> None:
        super().__init__()
        self.accesses: list[tuple[int, AccessMode]] = []

    def _open(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self.accesses.append((nbytes, mode))
        super()._open(region, nbytes, mode)


def program(instructions: tuple[Any, ...], inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Executable:
    """On a device in whose memory inputs and outputs are, and a CPU that uses it between barriers; y may be x."""
    exe = programs.executable(dict.fromkeys(inputs, (N,)), dict.fromkeys(outputs, (N,)), instructions)
    target = Target({"kind": "llvm", "memory": [CACHED]}).to_json()
    return replace(
        exe,
        functions={"main": replace(exe.main, aliases=(("y", "x"),))},
        vdevices=(VDevice("dev", 0, "cached"), VDevice("cpu", 1, "global")),
        modules=(ModuleImage(target, IMAGE), exe.modules[0]),
        metadata={"on_mismatch": "error"},
    )


def read_late() -> Executable:
    """The device doubles x for z, while the CPU could write twice w to y, if y were not x."""
    view = [View(3 + n, n, 0, (N,), "float32", "to cpu", 1) for n in (1, 2)]
    return program((*view, Call(0, "double", (0, 3), 1), Call(1, "double", (4, 5), N, vdevice=1)), ("x", "w"), "yz")


def of_the_cpu() -> Executable:
    """The CPU doubles x to y."""
    views = [View(2 + n, n, 0, (N,), "float32", "to cpu", 1) for n in (0, 1)]
    storage = (AllocStorage(4, 4 * N, 0, 64), AllocTensor(5, 4, 0, (N,), "float32", "other"))
    first = Call(0, "double", (0, 5), 1)  # so that the program has kernels of the device
    return program((*views, *storage, first, Call(1, "double", (2, 3), N, vdevice=1)), ("x",), ("y",))


def on(board: StrictBoard, exe: Executable) -> lb.Session:
    return lb.Session(exe, devices={"cpu": "cpu", "dev": Device(board, 0)}, num_threads=1)


def tensor(board: StrictBoard, value: float) -> lb.Tensor:
    created = lb.empty((N,), dtype="float32", device=Device(board, 0), scope="cached")
    with created.host_view("w") as array:
        array[:] = value
    return created


def read(each: lb.Tensor) -> np.ndarray[Any, Any]:
    return np.asarray(each.to_device("cpu"))


def late(board: StrictBoard) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    session, state, z = on(board, read_late()), tensor(board, 1), tensor(board, 0)
    session.set_input_zero_copy("x", state)
    session.set_output_zero_copy("y", state)
    session.set_input_zero_copy("w", tensor(board, 5))
    session.set_output_zero_copy("z", z)
    session.run()
    return read(state), read(z)


def test_the_host_writes_a_state_after_the_device_has_read_it() -> None:
    board = StrictBoard()
    state, z = late(board)
    assert (state == 10).all() and (z == 2).all()
    assert board.early == [] and board.violations == []


def test_a_missing_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the two registers count as two memories, the test above fails."""
    monkeypatch.setattr(Function, "alias_registers", property(lambda _: {}))
    board = StrictBoard()
    state, z = late(board)
    assert board.early or not ((state == 10).all() and (z == 2).all())


def test_one_memory_has_one_barrier_and_two_have_two() -> None:
    board = CountingBoard()
    session, state, other = on(board, of_the_cpu()), tensor(board, 3), tensor(board, 0)
    session.set_input_zero_copy("x", state)
    for target, expected, accesses in ((state, 6, 1), (other, 12, 2), (state, 12, 1)):
        session.set_output_zero_copy("y", target)
        board.accesses.clear()
        session.run()
        assert len(board.accesses) == accesses
        assert (read(target) == expected).all()


def test_overlapping_accesses_are_one() -> None:
    one, other = (lb.empty((512,), dtype="uint8").storage for _ in "ab")
    found = joined([
        BoundBytes(one, 0, 64, "r"), BoundBytes(one, 64, 128, "r"), BoundBytes(other, 0, 64, "w"),
        BoundBytes(one, 32, 96, "w"), BoundBytes(one, 256, 300, "w"), BoundBytes(one, 256, 300, "w"),
    ])  # fmt: skip
    assert found == [BoundBytes(other, 0, 64, "w"), BoundBytes(one, 0, 128, "rw"), BoundBytes(one, 256, 300, "w")]


def test_what_begins_at_the_same_byte_is_one_memory() -> None:
    array = np.zeros(64, np.float32)
    tensor = lb.asarray(array)
    assert is_one_memory(array, array[:]) and is_one_memory(tensor, tensor)
    assert not is_one_memory(array, array[1:]) and not is_one_memory(tensor, lb.asarray(array.copy()))
