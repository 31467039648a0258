"""Tensors that a Session plans lie where a device's alignment says, by their addresses too."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import onnx.parser
import pytest

import landbridge as lb
from landbridge.device import registry
from landbridge.devices.cma import CmaDeviceAPI
from landbridge.devices.cma.from_callable import CallableSource
from landbridge.executable.instructions import AllocStorage, AllocTensor
from landbridge.memory.allocators.base import Block, Queue, Size
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory_kind import MemoryKind

#: Three tensors between x and y, two of them alive at a time.
NETWORK = """<ir_version: 10, opset_import: ["" : 18]> g (float[24,24] x) => (float[24,24] y) {
    a = MatMul(x, x)
    b = MatMul(a, x)
    c = MatMul(b, a)
    y = MatMul(c, b)
}"""


def file_of(nbytes: int) -> int:
    fd = os.memfd_create("board", os.MFD_CLOEXEC)
    os.ftruncate(fd, nbytes)
    return fd


class Recording(NaiveAllocator):
    """Where its blocks begin in this process, by their sizes."""

    def __init__(self, device: lb.Device) -> None:
        super().__init__(device)
        self.begins: list[tuple[int, int]] = []

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        block = super().allocate(size, alignment, queue)
        self.begins.append((block.nbytes, block.region.space.handle.address + block.region.byte_offset))
        return block


@pytest.fixture(params=[1, 1 << 8, 1 << 16, 1 << 21, 1 << 30])
def alignment(request: pytest.FixtureRequest) -> Iterator[int]:
    wanted: int = request.param

    class Board(CmaDeviceAPI):
        name: ClassVar[str] = "board"

        def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
            kinds = super().memory_kinds(index)
            return {scope: replace(kind, offset_alignment=wanted) for scope, kind in kinds.items()}

    registry.register(Board([CallableSource(file_of)]))
    yield wanted
    registry.unregister("board")


def test_planned_tensors_begin_at_multiples(alignment: int) -> None:
    board = lb.device("board")
    target = lb.Target.from_device(board, "llvm")
    program = lb.compile(onnx.parser.parse_model(NETWORK), {"board": target})
    (storage,) = (i for i in program.main.instructions if isinstance(i, AllocStorage))
    tensors = [i for i in program.main.instructions if isinstance(i, AllocTensor)]
    assert len({tensor.offset for tensor in tensors}) > 1
    assert not any(tensor.offset % alignment for tensor in tensors)
    recording = Recording(board)
    session = lb.Session(program, device=board, memory_cfg={("board:0", "global"): recording})
    begins = [begin for nbytes, begin in recording.begins if nbytes >= storage.nbytes]
    assert begins
    assert not any((begin + tensor.offset) % alignment for begin in begins for tensor in tensors)
    x = np.random.default_rng(0).random((24, 24), dtype=np.float32) / 12
    (y,) = session(x)
    a = x @ x
    b = a @ x
    np.testing.assert_allclose(np.asarray(y), b @ a @ b, rtol=1e-5)
