"""Module: the kernels of one code image as PackedFuncs by name, for anything that speaks tvm-ffi."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from landbridge.errors import InputError
from landbridge.executable import instructions as ins
from landbridge.executable.executable import Executable
from landbridge.executable.packed import PREFIX, PackedKernel, with_packed_functions
from landbridge.executable.parts import TensorSpec
from landbridge.executable.shared_library import shared_library
from landbridge.output_file import check_outputs, open_output
from landbridge.vm.code_image import load_image

if TYPE_CHECKING:
    import tvm_ffi


class Module(Mapping[str, "tvm_ffi.Function"]):
    """The kernels of module ``index`` of ``executable`` that its main function calls.

    ``module["name"](*tensors)`` runs all tasks of a kernel on the calling thread: inputs first, then the
    destinations it writes, as Tensors, numpy arrays, torch tensors or anything else with ``__dlpack__``, on the
    CPU, dense, of the dtypes and shapes in ``kernels[name].operands``. What does not fit raises TypeError,
    ValueError or BufferError; nothing is copied or cast. ``kernels`` says of each what it takes. Kernels with operands
    in rows of a scratchpad are not among them: a tensor of tvm-ffi has one address, and they take one for each row.
    """

    def __init__(self, executable: Executable, index: int = 0) -> None:
        """Raises InputError for a module there is not, ExecutableError for code that cannot run here."""
        if not 0 <= index < len(executable.modules):
            raise InputError(f"module {index} of an executable that has {len(executable.modules)}; they count from 0")
        self.kernels: Mapping[str, PackedKernel] = MappingProxyType(_kernels(executable, index))
        self._sources = executable.sources
        self._image = with_packed_functions(executable.modules[index].image, self.kernels)
        self._loaded = load_image(self._image)
        self._functions: dict[str, tvm_ffi.Function] = {}

    def __getitem__(self, name: str) -> tvm_ffi.Function:
        """The kernel called ``name``, which keeps the code alive; raises KeyError."""
        function = self._functions.get(name)
        if function is None:
            if name not in self.kernels:
                raise KeyError(f"no kernel is called {name!r}; there are: {', '.join(self.kernels) or 'none'}")
            import tvm_ffi

            address = self._loaded.address(PREFIX + name)
            function = tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=self._loaded)
            self._functions[name] = function
        return function

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def export(self, path: str | Path) -> None:
        """Write the kernels as a shared library that ``tvm_ffi.load_module(path)`` loads, without Landbridge.

        It needs the C library alone, and a CPU with the features of the target. It is written as ``Executable.save``
        writes. Raises ExecutableError for code of another instruction set than x86-64.
        """
        check_outputs([path], self._sources)
        made = shared_library(self._image, [PREFIX + name for name in self.kernels])
        with open_output(path, self._sources, executable=True) as file:
            file.write(made)


def _kernels(executable: Executable, index: int) -> dict[str, PackedKernel]:
    """What each kernel of module ``index`` takes, by the instructions that call it."""
    function = executable.main
    tensors = dict(enumerate(spec.memory for spec in (*function.inputs, *function.outputs)))
    in_rows: set[int] = set()
    kernels: dict[str, PackedKernel] = {}
    for instruction in ins.flattened(function.instructions):
        match instruction:
            case ins.AllocTensor(dst=dst) | ins.LoadConstant(dst=dst) if instruction.axis_separators:
                in_rows.add(dst)
            case ins.AllocStorage(dst=dst, nbytes=nbytes):
                tensors[dst] = TensorSpec("", (nbytes,), "uint8")
            case ins.AllocTensor(dst=dst, shape=shape, dtype=dtype) | ins.View(dst=dst, shape=shape, dtype=dtype):
                tensors[dst] = TensorSpec("", shape, dtype)
            case ins.LoadConstant(dst=dst, name=name):
                constant = executable.constants[name]
                tensors[dst] = TensorSpec(name, constant.shape, constant.dtype.name)
            case ins.Call(module=module, function=name, args=args, tasks=tasks) if (
                module == index and in_rows.isdisjoint(args)
            ):
                kernels[name] = PackedKernel(tasks, tuple(tensors[register] for register in args))
    return kernels
