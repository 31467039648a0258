"""Run an Executable with nothing but ctypes: storage is poisoned first, so what is read before it is written shows."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
from tests.codegen.native import kernel_of

from landbridge.dtypes import numpy_dtype
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
from landbridge.vm.code_image import load_image

Array = np.ndarray[Any, Any]
#: A register that no instruction defines.
_SIZES = -1


class NativeRun:
    """Registers are flat byte arrays; ``called`` lists the functions in the order they ran."""

    def __init__(self, exe: Executable) -> None:
        self.exe = exe
        self.images = [load_image(module.image) for module in exe.modules]
        self.registers: dict[int, Array] = {}
        self.called: list[str] = []

    def __call__(self, *inputs: Array) -> list[Array]:
        main = self.exe.main
        outputs = [np.full(spec.shape, 0, numpy_dtype(spec.dtype)) for spec in main.outputs]
        for number, array in enumerate([*inputs, *outputs]):
            self.registers[number] = array.reshape(-1).view(np.uint8)
            assert np.shares_memory(array, self.registers[number]) or array.size == 0
        for output in self.registers.values():
            assert output.flags["C_CONTIGUOUS"]
        for number in range(len(inputs), len(inputs) + len(outputs)):
            self.registers[number][:] = 0xFF
        before = [np.array(a) for a in inputs]
        self.run(main.instructions)
        for old, new in zip(before, inputs, strict=True):
            assert old.tobytes() == new.tobytes(), "a kernel wrote an input"
        return outputs

    def run(self, instructions: tuple[Instruction, ...]) -> None:
        for instruction in instructions:
            self.step(self._with_sizes(instruction) if isinstance(instruction, Call) else instruction)

    def _with_sizes(self, call: Call) -> Call:
        """``call`` with its sizes, if it has any, in a register of their own: one operand more."""
        if not call.sizes:
            return call
        sizes = np.array(call.sizes, np.int64).view(np.uint8)
        sizes.flags.writeable = False
        self.registers[_SIZES] = sizes
        return replace(call, args=(*call.args, _SIZES), sizes=())

    def step(self, i: Instruction) -> None:
        at = self.registers
        if isinstance(i, AllocStorage):
            at[i.dst] = np.full(i.nbytes, 0xFF, np.uint8)
        elif isinstance(i, AllocTensor):
            size = int(np.prod(i.shape)) * numpy_dtype(i.dtype).itemsize
            assert i.offset + size <= at[i.storage].size
            at[i.dst] = at[i.storage][i.offset : i.offset + size]
        elif isinstance(i, LoadConstant):
            at[i.dst] = np.ascontiguousarray(self.exe.constants[i.name]).reshape(-1).view(np.uint8)
        elif isinstance(i, View):
            size = int(np.prod(i.shape)) * numpy_dtype(i.dtype).itemsize
            assert i.offset + size <= at[i.src].size
            at[i.dst] = at[i.src][i.offset : i.offset + size]
        elif isinstance(i, Call):
            self.called.append(i.function)
            addresses = (ctypes.c_void_p * len(i.args))(*(at[a].ctypes.data for a in i.args))
            kernel = kernel_of(self.images[i.module], i.function)
            for task in reversed(range(i.tasks)):
                kernel(ctypes.addressof(addresses), task, task + 1)
        elif isinstance(i, ToVDevice):
            at[i.dst][:] = at[i.src]
        elif isinstance(i, If):
            self.run(i.then if at[i.condition][0] else i.orelse)
        else:
            raise TypeError(f"no native form of {i}")
