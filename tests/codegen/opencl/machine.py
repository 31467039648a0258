"""Runs whole Executables of one OpenCL target with the test launcher: memory is numpy's, used in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    Call,
    If,
    Instruction,
    LoadConstant,
    ToVDevice,
    View,
)
from tests.codegen.opencl.launcher import Program, cl

Array = np.ndarray[Any, Any]


class Machine:
    """An Executable whose storages are allocated and whose calls are bound."""

    def __init__(self, executable: Executable) -> None:
        self.executable = executable
        (module,) = executable.modules
        assert isinstance(module.image, DeviceImage)
        self.program = Program(module.image)
        self.registers: dict[int, Array] = {}
        self.buffers: dict[int, Any] = {}
        self.calls: dict[int, tuple[Any, list[Any]]] = {}

    def __call__(self, *inputs: Array) -> list[Array]:
        main = self.executable.main
        outputs = [np.zeros(spec.shape, numpy_dtype(spec.dtype)) for spec in main.outputs]
        self.bind(inputs, outputs)
        self.run()
        return outputs

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Give the program its inputs and outputs, which it uses in place."""
        main = self.executable.main
        for number, array in enumerate([*inputs, *outputs]):
            spec = (*main.inputs, *main.outputs)[number]
            assert array.shape == spec.shape and array.dtype == numpy_dtype(spec.dtype)
            self._define(number, np.ascontiguousarray(array))
        self._bind(main.instructions)

    def run(self) -> None:
        """Run the bound program and wait."""
        self._run(self.executable.main.instructions)
        self.program.queue.finish()

    def _define(self, number: int, array: Array) -> None:
        self.registers[number] = array
        mode = cl.mem_flags.READ_WRITE if array.flags.writeable else cl.mem_flags.READ_ONLY
        host = array if array.nbytes else np.zeros(1, np.uint8)
        self.buffers[number] = cl.Buffer(self.program.context, mode | cl.mem_flags.USE_HOST_PTR, hostbuf=host)

    def _bind(self, instructions: Sequence[Instruction]) -> None:
        for i in instructions:
            if isinstance(i, AllocStorage):
                self.registers[i.dst] = _aligned(i.nbytes)
            elif isinstance(i, AllocTensor):
                self._define(i.dst, _view(self.registers[i.storage], i.offset, i.shape, i.dtype))
            elif isinstance(i, LoadConstant):
                self._define(i.dst, self.executable.constants[i.name])
            elif isinstance(i, View):
                self._define(i.dst, _view(self.registers[i.src], i.offset, i.shape, i.dtype))
            elif isinstance(i, Call):
                sequence = self.program.image.functions[i.function]
                buffers = [*(self.buffers[a] for a in i.args), *self.program.scratch(sequence)]
                self.calls[id(i)] = sequence, buffers
            elif isinstance(i, If):
                self._bind(i.then)
                self._bind(i.orelse)
            else:
                assert isinstance(i, ToVDevice), i

    def _run(self, instructions: Sequence[Instruction]) -> None:
        for i in instructions:
            if isinstance(i, Call):
                self.program.enqueue(*self.calls[id(i)])
            elif isinstance(i, ToVDevice):
                self.program.queue.finish()
                self.registers[i.dst].reshape(-1).view(np.uint8)[:] = self.registers[i.src].reshape(-1).view(np.uint8)
            elif isinstance(i, If):
                self.program.queue.finish()
                self._run(i.then if self.registers[i.condition].reshape(-1).view(np.uint8)[0] else i.orelse)


def _aligned(nbytes: int) -> Array:
    raw = np.zeros(nbytes + 4096, np.uint8)
    start = -raw.ctypes.data % 4096
    return raw[start : start + nbytes]


def _view(array: Array, offset: int, shape: Sequence[int], dtype: str) -> Array:
    kind = numpy_dtype(dtype)
    flat = array.reshape(-1).view(np.uint8)
    size = int(np.prod(shape)) * kind.itemsize
    return flat[offset : offset + size].view(kind).reshape(tuple(shape))


def run_executable(executable: Executable, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs for inputs by name."""
    return Machine(executable)(*(feeds[spec.name] for spec in executable.main.inputs))
