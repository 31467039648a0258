"""Code of the host in a device's memory: barriers stand around it, and it alternates with the device's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region
from landbridge.device.protocols import AccessMode
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import AllocStorage, AllocTensor, Call, If, Instruction, View
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.memory_kind import MemoryKind
from landbridge.targets import Target
from landbridge.testing.sim_board import SimBoardDeviceAPI
from landbridge.vm.borrowed_memory import BorrowedMemory, granules
from landbridge.vm.owned_memory import FlatMemory
from landbridge.vm.program import AccessStep, Step, WaitStep
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
    """``early`` are barriers that came while the device was at work on the bytes, ``draining`` those that would have
    waited for all of its work.
    """

    def __init__(self) -> None:
        super().__init__(0)
        self.early: list[str] = []
        self.draining: list[Region] = []

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self.draining.append(region)
        super().begin_host_access(region, nbytes, mode)

    def _open(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        block, start = region.space.handle, region.byte_offset
        pending = self._pending(block, start, start + nbytes, writes=True)
        # a launch is on all bytes from an operand on, of which this is one: no other bytes are the program's
        self.early += [task.subject for task in pending if any(use[:2] == (block, start) for use in task.uses)]
        super()._open(region, nbytes, mode)


def executable(*program: Instruction) -> Executable:
    """A program with input x and output y, which belong to the CPU, and cached memory of a device."""
    exe = programs.executable({"x": (N,)}, {"y": (N,)}, program)
    target = Target({"kind": "llvm", "memory": [CACHED]}).to_json()
    return replace(
        exe,
        vdevices=(VDevice("cpu", 0, "global"), VDevice("dev", 1, "cached")),
        modules=(exe.modules[0], ModuleImage(target, IMAGE)),
        metadata={"on_mismatch": "error"},
    )


def in_place() -> Executable:
    """``y = 16 x``: doubled by the CPU, the device, the CPU over what the device reads, and the CPU."""
    return executable(
        AllocStorage(2, 8 * N, 1, 64),
        AllocTensor(3, 2, 0, (N,), "float32", "by cpu"),
        AllocTensor(4, 2, 4 * N, (N,), "float32", "by device"),
        Call(0, "double", (0, 3), N),
        Call(1, "double", (3, 4), 1, vdevice=1),
        View(5, 4, 0, (N,), "float32", "by device to cpu", 0),
        Call(0, "double", (5, 3), N),
        Call(0, "double", (3, 1), N, "last", 4 * N),
    )


@pytest.fixture
def board() -> StrictBoard:
    return StrictBoard()


def session(board: StrictBoard, exe: Executable | None = None) -> lb.Session:
    return lb.Session(exe or in_place(), devices={"cpu": "cpu", "dev": Device(board, 0)}, num_threads=1)


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


def test_barriers_in_a_run_wait_for_nothing_else(board):
    """The run has waited for what they are for; a host view also waits for what others submitted."""
    s = session(board)
    assert (np.asarray(s(np.ones(N, np.float32))[0]) == 16).all()
    assert board.draining == []
    t = lb.empty((N,), dtype="float32", device=Device(board, 0), scope="cached")
    with t.host_view("w"):
        assert len(board.draining) == 1


def test_host_views_see_what_was_submitted_past_the_runtime(board):
    dev = Device(board, 0)
    source, target = (lb.empty((N,), dtype="float32", device=dev, scope="cached") for _ in range(2))
    with source.host_view("w") as a, target.host_view("w") as b:
        a[:], b[:] = 3, 0
    ends = (tensor.storage.live_region for tensor in (source, target))
    event = board.copy_data_from_to(*ends, 4 * N, None, None)
    with target.host_view("r") as seen:
        assert (seen == 3).all()
    assert event is not None and event.query()


def memory_of_the_device(*names: str) -> tuple[Instruction, ...]:
    """Registers from 3 on, each a granule of the device's memory."""
    tensors = (AllocTensor(3 + n, 2, 64 * n, (N,), "float32", name) for n, name in enumerate(names))
    return (AllocStorage(2, 64 * len(names), 1, 64), *tensors)


def kinds(steps: Sequence[Step]) -> list[object]:
    return [kinds(step.steps) if isinstance(step, AccessStep) else type(step).__name__ for step in steps]


def test_barriers_come_before_launches_that_nothing_orders_them_with(board):
    """The CPU's second step shares no bytes with the launch, before which its barriers are called."""
    s = session(
        board,
        executable(
            *memory_of_the_device("x", "2 x", "other"),
            Call(0, "double", (0, 3), N),
            Call(1, "double", (3, 4), 1, vdevice=1),
            Call(0, "double", (0, 5), N),
            View(6, 4, 0, (N,), "float32", "2 x here", 0),
            Call(0, "double", (6, 1), N),
        ),
    )
    assert kinds(s._executor.program.program.steps) == [
        ["NativeStep"],
        ["KernelStep", "NativeStep"],
        "WaitStep",
        ["NativeStep"],
    ]
    assert (np.asarray(s(np.ones(N, np.float32))[0]) == 8).all()
    assert board.early == []


def test_a_launch_that_is_waited_for_is_a_step_of_its_own(board):
    """The CPU needs the first of two kernels, and waits for that one."""
    s = session(
        board,
        executable(
            *memory_of_the_device("x", "needed", "unneeded"),
            Call(0, "double", (0, 3), N),
            Call(1, "double", (3, 4), 1, vdevice=1),
            Call(1, "double", (3, 5), 1, vdevice=1),
            View(6, 4, 0, (N,), "float32", "needed here", 0),
            Call(0, "double", (6, 1), N),
        ),
    )
    steps = s._executor.program.program.steps
    assert kinds(steps) == [["NativeStep"], "KernelStep", "KernelStep", "WaitStep", ["NativeStep"]]
    assert steps[3] == WaitStep((steps[1].number,))
    assert (np.asarray(s(np.ones(N, np.float32))[0]) == 8).all()


def test_a_trace_names_the_calls_that_come_in_another_order(board):
    """What the device needs comes before what stands first in the program, and its name with it."""
    exe = executable(
        *memory_of_the_device("needed", "2 x", "else"),
        Call(0, "double", (0, 5), N, "late"),
        Call(0, "double", (0, 3), N, "early"),
        Call(1, "double", (3, 4), 1, vdevice=1),
        View(6, 4, 0, (N,), "float32", "2 x here", 0),
        If(0, (Call(0, "double", (6, 1), N, "then"),), (Call(0, "double", (5, 1), N, "else"),)),
        Call(0, "double", (6, 5), N, "last"),
    )
    x = lb.asarray(np.ones(N, np.float32))
    events = trace_run(exe, Device(board, 0), {"x": x}, num_threads=1)
    assert [event.name for event in events if event.lane == "cpu"] == ["early", "late", "else", "last"]


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
    found, touched = borrowed.take()
    assert [(each.start, each.stop, each.mode) for each in found] == [
        (0, 64, "rw"),
        (256, 320, "r"),
        (320, 384, "rw"),
    ]
    assert [touch[1:] for touch in touched] == [(0, 64, True), (256, 320, False), (320, 384, True)]
    assert borrowed.take() == ((), [])


def test_an_output_that_may_be_an_input_is_the_same_memory():
    """A launch that uses the one must not come behind a barrier of the other."""
    kind = MemoryKind("global", "read_write", coherent=False, coherence_granule=64)
    borrowed = BorrowedMemory({1: 0})
    borrowed.add(kind, RegisterLocation(1, 0, 64), writes=True)
    found, touched = borrowed.take()
    assert found[0].memory == 1 and touched == [(0, 0, 64, True)]
