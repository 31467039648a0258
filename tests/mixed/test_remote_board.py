"""A program of the CPU and a board in another process: neither waits for work of the other that it does not need.

The board is held until the CPU's part is done, so a CPU that waits for the board never gets there.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import AllocStorage, AllocTensor, Call, Instruction, ToVDevice, View
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.targets import Target
from tests.mixed.remote_board import IMAGE, LINE, MEMORY, N, RemoteBoard, RemoteBoardWithEvents
from tests.vm import programs

X, Y, Z = 0, 1, 2  # the registers of input x, and of outputs y and z


@pytest.fixture(params=[RemoteBoard, RemoteBoardWithEvents])
def board(request: pytest.FixtureRequest) -> Iterator[RemoteBoard]:
    made = request.param()
    yield made
    made.close()


def executable(*instructions: Instruction, io_on_board: bool = True) -> Executable:
    """A program with input x and outputs y and z, on vdevices 0, which owns these, and 1."""
    exe = programs.executable({"x": (N,)}, {"y": (N,), "z": (N,)}, instructions)
    board = VDevice("board", 1, "global"), ModuleImage(Target({"kind": "llvm", "memory": [MEMORY]}).to_json(), IMAGE)
    cpu = VDevice("cpu", 0, "global"), exe.modules[0]
    vdevices = (board[0], cpu[0]) if io_on_board else (cpu[0], board[0])
    return replace(exe, vdevices=vdevices, modules=(cpu[1], board[1]), metadata={"on_mismatch": "error"})


def by_board(source: int, target: int, kernel: str = "held", vdevice: int = 0) -> Call:
    return Call(1, kernel, (source, target), 1, vdevice=vdevice)


def by_cpu(source: int, target: int, vdevice: int = 1) -> Call:
    return Call(0, "double", (source, target), N, vdevice=vdevice)


def session(board: RemoteBoard, exe: Executable) -> lb.Session:
    return lb.Session(exe, devices={"cpu": "cpu", "board": Device(board, 0)}, num_threads=1)


def run_held(board: RemoteBoard, exe: Executable, watched: str, expected: float, kernels: int = 1) -> dict[str, float]:
    """The outputs of a run on x = 1 whose ``held`` kernels begin when output ``watched`` is ``expected``."""
    s = session(board, exe)
    s.set_input("x", np.ones(N, np.float32))
    out = lb.empty((N,), dtype="float32", device=exe_device(board, exe))
    s.set_output_zero_copy(watched, out)
    seen = (ctypes.c_float * N).from_address(out.data_address)
    run = s.run_async()
    end = time.monotonic() + 30
    while seen[N - 1] != expected and time.monotonic() < end:
        time.sleep(1e-3)
    was_done, found = run.done(), seen[N - 1]
    board.release(kernels)
    run.wait(30)
    assert found == expected and not was_done
    return {name: float(np.asarray(s.get_output(name).to_device("cpu"))[0]) for name in ("y", "z")}


def exe_device(board: RemoteBoard, exe: Executable) -> Device | str:
    return Device(board, 0) if exe.vdevices[0].name == "board" else "cpu"


@pytest.mark.parametrize("board_first", [True, False])
def test_inputs_of_the_board_are_used_in_place_meanwhile(board: RemoteBoard, board_first: bool) -> None:
    """Barriers on input and output of the CPU's part come before the launch, or wait for nothing."""
    parts = by_board(X, Y), by_cpu(X, Z)
    exe = executable(*(parts if board_first else parts[::-1]))
    assert run_held(board, exe, "z", 2.0) == {"y": 2.0, "z": 2.0}


@pytest.mark.parametrize("board_first", [True, False])
def test_copies_to_and_from_the_board_do_not_delay_the_other_part(board: RemoteBoard, board_first: bool) -> None:
    """The copy to the board comes before the CPU's part, and the copy back, which waits, after it."""
    on_board = ToVDevice(X, 4, "x"), by_board(4, 5, vdevice=1), ToVDevice(5, Y, "y")
    parts = (*on_board, by_cpu(X, Z, 0)) if board_first else (by_cpu(X, Z, 0), *on_board)
    exe = executable(
        AllocStorage(3, 2 * LINE, 1, LINE),
        AllocTensor(4, 3, 0, (N,), "float32", "x there"),
        AllocTensor(5, 3, LINE, (N,), "float32", "y there"),
        *parts,
        io_on_board=False,
    )
    assert run_held(board, exe, "z", 2.0) == {"y": 2.0, "z": 2.0}


def test_a_step_that_needs_one_kernel_does_not_wait_for_the_next() -> None:
    """``z = 4 x`` by the board and the CPU, ``y = 2 x`` by a kernel that comes after the first and is held."""
    board = RemoteBoardWithEvents()
    exe = executable(
        AllocStorage(3, LINE, 0, LINE),
        AllocTensor(4, 3, 0, (N,), "float32", "by the board"),
        by_board(X, 4, "double"),
        by_board(X, Y),
        View(5, 4, 0, (N,), "float32", "by the board, to cpu", 1),
        by_cpu(5, Z),
    )
    try:
        assert run_held(board, exe, "z", 4.0) == {"y": 2.0, "z": 4.0}
    finally:
        board.close()


def test_a_board_without_such_barriers_is_waited_for_where_it_must_be(board: RemoteBoard) -> None:
    """What the CPU reads is what the board wrote, by either barrier."""
    exe = executable(
        AllocStorage(3, 2 * LINE, 0, LINE),
        AllocTensor(4, 3, 0, (N,), "float32", "by the board"),
        AllocTensor(5, 3, LINE, (N,), "float32", "by cpu"),
        by_board(X, 4, "double"),
        View(6, 4, 0, (N,), "float32", "by the board, to cpu", 1),
        View(7, 5, 0, (N,), "float32", "for cpu", 1),
        by_cpu(6, 7),
        by_board(5, Y, "double"),
        by_cpu(X, Z),
    )
    s = session(board, exe)
    for step in range(1, 6):
        s.set_input("x", np.full(N, step, np.float32))
        s.run()
        y, z = (np.asarray(s.get_output(name).to_device("cpu")) for name in ("y", "z"))
        assert (y == 8 * step).all() and (z == 2 * step).all()
