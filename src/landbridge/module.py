"""Module: the kernels of one code image as functions, called one at a time; for tests, tuning and looking."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from landbridge.dtypes import dtype
from landbridge.errors import InputError, ZeroCopyError
from landbridge.executable import instructions as ins
from landbridge.executable.executable import Executable
from landbridge.tensor import Tensor, from_dlpack
from landbridge.vm.code_image import LoadedImage, load_image

if TYPE_CHECKING:
    import tvm_ffi

_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Kernel:
    """One function of a Module: ``kernel(*tensors)`` runs all its ``tasks`` on the calling thread.

    The operands are inputs, then destinations: contiguous Tensors in host memory, of the sizes in bytes of
    ``operands``.
    """

    def __init__(self, image: LoadedImage, name: str, tasks: int, operands: tuple[int, ...]) -> None:
        self.name = name
        self.tasks = tasks
        self.operands = operands
        self._image = image
        self._function = _KERNEL(image.address(name))

    def __call__(self, *tensors: Tensor) -> None:
        if len(tensors) != len(self.operands):
            raise InputError(f"kernel {self.name!r} takes {len(self.operands)} tensors, not {len(tensors)}")
        for i, (tensor, nbytes) in enumerate(zip(tensors, self.operands, strict=True)):
            if tensor.nbytes != nbytes:
                raise InputError(f"kernel {self.name!r}: operand {i} has {tensor.nbytes} bytes, it takes {nbytes}")
            if not tensor.is_contiguous:
                raise ZeroCopyError(f"kernel {self.name!r}: operand {i} is not contiguous; pass tensor.copy()")
        args = (ctypes.c_void_p * len(tensors))(*[tensor.data_address for tensor in tensors])
        self._function(ctypes.addressof(args), 0, self.tasks)

    def packed(self) -> tvm_ffi.Function:
        """The kernel as a PackedFunc, for whatever loads those; its tensors come and go by DLPack, in place."""
        import tvm_ffi

        def call(*tensors: tvm_ffi.Tensor) -> None:
            self(*[from_dlpack(tensor, copy=False) for tensor in tensors])

        function: tvm_ffi.Function = tvm_ffi.convert(call)
        return function


class Module(Mapping[str, Kernel]):
    """The kernels of module ``index`` of ``executable`` that its main function calls, by name."""

    def __init__(self, executable: Executable, index: int = 0) -> None:
        image = load_image(executable.modules[index].image)
        function = executable.main
        sizes = {i: _nbytes(s.shape, s.dtype) for i, s in enumerate((*function.inputs, *function.outputs))}
        self._kernels: dict[str, Kernel] = {}
        for instruction in _flat(function.instructions):
            match instruction:
                case ins.AllocStorage(dst=dst, nbytes=nbytes):
                    sizes[dst] = nbytes
                case ins.AllocTensor(dst=dst, shape=shape, dtype=name) | ins.View(dst=dst, shape=shape, dtype=name):
                    sizes[dst] = _nbytes(shape, name)
                case ins.LoadConstant(dst=dst, name=name):
                    sizes[dst] = executable.constants[name].nbytes
                case ins.Call(module=module, function=name, args=args, tasks=tasks) if module == index:
                    self._kernels[name] = Kernel(image, name, tasks, tuple(sizes[register] for register in args))

    def __getitem__(self, name: str) -> Kernel:
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)


def _flat(instructions: Sequence[ins.Instruction]) -> Iterator[ins.Instruction]:
    """``instructions`` with those of branches in their place."""
    for instruction in instructions:
        if isinstance(instruction, ins.If):
            yield from _flat(instruction.then)
            yield from _flat(instruction.orelse)
        else:
            yield instruction


def _nbytes(shape: Sequence[int], dtype_name: str) -> int:
    return math.prod(shape) * dtype(dtype_name).itemsize
