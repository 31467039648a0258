"""Module: the kernels of one code image as functions, called one at a time; for tests, tuning and looking."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence

from landbridge.errors import InputError
from landbridge.executable.executable import CodeImage, Executable
from landbridge.executable.instructions import Call, If, Instruction
from landbridge.tensor import Tensor
from landbridge.vm.code_image import LoadedImage, load_image

_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Kernel:
    """One function of a Module: ``kernel(*tensors)`` runs all its tasks on the calling thread.

    The operands are inputs, then destinations: contiguous Tensors in host memory, of the shapes it was compiled
    for. The code knows them by address alone: operands of other sizes are undefined behaviour.
    """

    def __init__(self, image: LoadedImage, name: str, tasks: int, operands: int) -> None:
        self.name = name
        self.tasks = tasks
        self._operands = operands
        self._image = image
        self._function = _KERNEL(image.address(name))

    def __call__(self, *tensors: Tensor) -> None:
        if len(tensors) != self._operands:
            raise InputError(f"kernel {self.name!r} takes {self._operands} tensors, not {len(tensors)}")
        addresses = []
        for i, tensor in enumerate(tensors):
            if not tensor.is_contiguous:
                raise InputError(f"kernel {self.name!r}: operand {i} is not contiguous; pass tensor.copy()")
            addresses.append(tensor.data_address)
        args = (ctypes.c_void_p * len(addresses))(*addresses)
        self._function(ctypes.addressof(args), 0, self.tasks)


class Module(Mapping[str, Kernel]):
    """The kernels of ``image``, by name; ``tasks`` and operand counts come from the program that calls them."""

    def __init__(self, image: CodeImage, instructions: Sequence[Instruction], index: int = 0) -> None:
        loaded = load_image(image)
        self._kernels = {
            call.function: Kernel(loaded, call.function, call.tasks, len(call.args))
            for call in _calls(instructions)
            if call.module == index
        }

    @classmethod
    def from_executable(cls, executable: Executable, index: int = 0) -> Module:
        """The Module ``index`` of ``executable``, with the kernels that its main function calls."""
        return cls(executable.modules[index].image, executable.main.instructions, index)

    def __getitem__(self, name: str) -> Kernel:
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)


def _calls(instructions: Sequence[Instruction]) -> Iterator[Call]:
    for instruction in instructions:
        if isinstance(instruction, Call):
            yield instruction
        elif isinstance(instruction, If):
            yield from _calls(instruction.then)
            yield from _calls(instruction.orelse)
