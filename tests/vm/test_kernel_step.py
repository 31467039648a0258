"""Recordings of a step: one for each way in which its buffers coincide, replayed with other memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Stream
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import AllocStorage, AllocTensor, Call
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.memory_kind import MemoryKind
from landbridge.targets import Target
from tests.vm import programs
from tests.vm.lazy_kernels import IMAGE, N
from tests.vm.test_borrowed_memory import CACHED, StrictBoard


class Recorded(StrictBoard):
    """``begun`` counts recordings, ``launches`` and ``copies`` what was recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = self.launches = self.copies = 0

    def begin_record(self, index: int, stream: Stream) -> None:
        self.begun += 1
        super().begin_record(index, stream)

    def launch(self, *args: Any) -> Any:
        self.launches += bool(self._recordings)
        return super().launch(*args)

    def copy_data_from_to(self, *args: Any) -> Any:
        self.copies += bool(self._recordings)
        return super().copy_data_from_to(*args)


def program(instructions: tuple[Any, ...], inputs: str, outputs: str) -> Executable:
    """On a device, with inputs and outputs in its memory; y may be x."""
    exe = programs.executable(dict.fromkeys(inputs, (N,)), dict.fromkeys(outputs, (N,)), instructions)
    target = Target({"kind": "llvm", "memory": [CACHED]}).to_json()
    return replace(
        exe,
        functions={"main": replace(exe.main, aliases=(("y", "x"),))},
        vdevices=(VDevice("dev", 0, "cached"),),
        modules=(ModuleImage(target, IMAGE),),
    )


def of(board: StrictBoard, value: float) -> lb.Tensor:
    created = lb.empty((N,), dtype="float32", device=Device(board, 0), scope="cached")
    with created.host_view("w") as array:
        array.fill(value)
    return created


def read(tensor: lb.Tensor) -> float:
    return float(np.asarray(tensor.to_device("cpu")).max())


#: Registers 0 to 2 are inputs, 3 to 5 outputs: each is twice an input.
THREE = tuple(Call(0, "double", (n, 3 + n), 1) for n in range(3))


def test_each_partition_of_inputs_is_recorded_once_while_there_are_few() -> None:
    board = Recorded()
    session = lb.Session(program(THREE, "xvw", "yab"), devices={"dev": Device(board, 0)})
    values = [of(board, value) for value in (1, 2, 3, 4)]
    results = [of(board, 0) for _ in "yab"]
    for name, result in zip("yab", results, strict=True):
        session.set_output_zero_copy(name, result)

    def run(*numbers: int) -> int:
        """Recordings that a run with these inputs began; its results are compared."""
        before = board.begun
        for name, number in zip("xvw", numbers, strict=True):
            session.set_input_zero_copy(name, values[number])
        session.run()
        assert [read(result) for result in results] == [2 * (number + 1) for number in numbers]
        return board.begun - before

    assert [run(0, 1, 2), run(0, 1, 2), run(3, 1, 0)] == [1, 0, 0]
    assert [run(0, 0, 1), run(2, 2, 3), run(0, 1, 2)] == [1, 0, 0]
    assert [run(0, 1, 1), run(1, 0, 1), run(0, 0, 0), run(2, 2, 2)] == [1, 1, 1, 0]
    assert [run(0, 0, 1), run(1, 1, 1)] == [1, 0]  # the one used longest ago was released
    assert board.violations == []


def test_a_copy_of_a_state_onto_itself_is_not_launched() -> None:
    storage = (AllocStorage(2, 4 * N, 0, 64), AllocTensor(3, 2, 0, (N,), "float32", "other"))
    copy = Call(0, "double", (0, 1), 1, "copy", 4 * N)  # says that it only moves: the device copies instead
    board = Recorded()
    exe = program((*storage, copy, Call(0, "double", (1, 3), 1)), "x", "y")
    session = lb.Session(exe, devices={"dev": Device(board, 0)})
    state, other = of(board, 5), of(board, 0)
    session.set_input_zero_copy("x", state)
    for target, recorded, moved in ((state, (1, 0), 0), (other, (1, 1), 4 * N), (state, (0, 0), 0)):
        session.set_output_zero_copy("y", target)
        before = board.launches, board.copies
        with lb.ledger() as moves:
            session.run()
        assert (board.launches - before[0], board.copies - before[1]) == recorded
        assert (moves.kernel_bytes, read(target)) == (moved, 5)


class CopiesGranules(Recorded):
    """Its copies are of multiples of twice the bytes of a tensor."""

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return {scope: replace(kind, copy_granule=8 * N) for scope, kind in super().memory_kinds(index).items()}


@pytest.mark.parametrize(("made", "launches"), [(Recorded, 0), (CopiesGranules, 1)])
def test_a_state_of_no_whole_granules_is_copied_by_its_kernel(made: type[Recorded], launches: int) -> None:
    """The device's own copy takes whole granules alone."""
    board = made()
    exe = program((Call(0, "double", (0, 1), 1, "copy", 4 * N),), "x", "y")
    target = Target({"kind": "llvm", "memory": [CACHED | {"copy_granule": 8 * N}]}).to_json()
    session = lb.Session(replace(exe, modules=(ModuleImage(target, IMAGE),)), devices={"dev": Device(board, 0)})
    session.set_input("x", np.ones(N, np.float32))
    session.run()
    assert (board.launches, board.copies) == (launches, 1 - launches)
