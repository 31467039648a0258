"""Code of the host in a device's memory: barriers stand around it, and it alternates with the device's kernels."""

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
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.memory_kind import MemoryKind
from landbridge.targets import Target
from landbridge.testing.sim_board import SimBoardDeviceAPI
from landbridge.vm.borrowed_memory import BorrowedMemory, granules
from landbridge.vm.owned_memory import FlatMemory
from landbridge.vm.registers import RegisterLocation
from landbridge.vm.trace import trace_run
from tests.vm import programs
from tests.vm.lazy_kernels import IMAGE, N

CACHED = {
    "scope": "cached",
    "host_access": "read_write",
    "coherent": False,
    "coherence_granule": 64,
    "offset_alignment": 64,
}


class StrictBoard(SimBoardDeviceAPI):
    """Its barriers wait for nothing: ``early`` are those that came while the device was at work on the bytes."""

    def __init__(self) -> None:
        super().__init__(0)
        self.early: list[str] = []

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        start = region.byte_offset
        self.early += [task.subject for task in self._pending(region.space.handle, start, start + nbytes, writes=True)]
        super().begin_host_access(region, nbytes, mode)


def in_place() -> Executable:
    """``y = 16 x``: doubled by the CPU, the device, the CPU over what the device reads, and the CPU."""
    program = (
        AllocStorage(2, 8 * N, 1, 64),
        AllocTensor(3, 2, 0, (N,), "float32", "by cpu"),
        AllocTensor(4, 2, 4 * N, (N,), "float32", "by device"),
        Call(0, "double", (0, 3), N),
        Call(1, "double", (3, 4), 1, vdevice=1),
        View(5, 4, 0, (N,), "float32", "by device to cpu", 0),
        Call(0, "double", (5, 3), N),
        Call(0, "double", (3, 1), N, "last", 4 * N),
    )
    exe = programs.executable({"x": (N,)}, {"y": (N,)}, program)
    target = Target({"kind": "llvm", "memory": [CACHED]}).to_json()
    return replace(
        exe,
        vdevices=(VDevice("cpu", 0, "global"), VDevice("dev", 1, "cached")),
        modules=(exe.modules[0], ModuleImage(target, IMAGE)),
        metadata={"on_mismatch": "error"},
    )


@pytest.fixture
def board() -> StrictBoard:
    return StrictBoard()


def session(board: StrictBoard) -> lb.Session:
    return lb.Session(in_place(), devices={"cpu": "cpu", "dev": Device(board, 0)}, num_threads=1)


def test_neither_side_sees_stale_bytes(board):
    s = session(board)
    x = np.zeros(N, np.float32)
    s.set_input_zero_copy("x", x)
    for step in range(1, 5):
        x[:] = step
        with lb.no_copies():
            s.run()
        assert (np.asarray(s.get_output("y")) == 16 * step).all()
        assert (np.asarray(s(x + 1)[0]) == 16 * (step + 1)).all()
    with lb.ledger() as moves:
        s.run()
    assert [(move.tensor, move.nbytes) for move in moves] == [("last", 4 * N)]
    assert (np.asarray(s.get_output("y")) == 64).all()
    assert board.violations == []


def test_a_step_of_the_host_waits_for_the_device(board):
    s = session(board)
    for step in range(3):
        assert (np.asarray(s(np.full(N, step, np.float32))[0]) == 16 * step).all()
    assert board.early == []


def test_a_trace_goes_into_it(board):
    x = lb.asarray(np.ones(N, np.float32))
    events = trace_run(in_place(), Device(board, 0), {"x": x}, num_threads=1)
    assert [event.lane for event in events].count("cpu") == 3


def place(owned: Any, offset: int, nbytes: int) -> RegisterLocation:
    return RegisterLocation(None, offset, nbytes, owned=owned)


def test_what_shares_a_granule_has_one_barrier():
    """Two barriers for one line: the second would bring back what the host has just written."""
    kind = MemoryKind("global", "read_write", coherent=False, coherence_granule=64)
    owned = FlatMemory(None, 512, lb.empty((512,), dtype="uint8"))
    assert granules(place(owned, 60, 8), 64) == (0, 128)
    borrowed = BorrowedMemory()
    for offset, nbytes, writes in [(256, 8, False), (0, 32, False), (32, 32, True), (130, 0, True), (320, 64, True)]:
        borrowed.add(kind, place(owned, offset, nbytes), writes=writes)
    found = borrowed.take()
    assert [(each.start, each.stop, each.mode) for each in found] == [
        (0, 64, "rw"),
        (256, 320, "r"),
        (320, 384, "rw"),
    ]
    assert borrowed.take() == ()
