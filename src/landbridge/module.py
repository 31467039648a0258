"""Module: the kernels of one code image as PackedFuncs by name, for anything that speaks tvm-ffi."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from landbridge.device.api import Device
from landbridge.device.registry import device as find_device
from landbridge.device.stream import chosen_device
from landbridge.errors import InputError, UnsupportedError
from landbridge.executable import instructions as ins
from landbridge.executable.abi import STACK_TEMPORARY_BYTES
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.executable import Executable
from landbridge.executable.packed import PREFIX, PackedKernel, with_packed_functions
from landbridge.executable.parts import Function, TensorSpec, given_function
from landbridge.executable.shared_library import shared_library
from landbridge.files.output_file import check_outputs, open_output
from landbridge.process.process_bound import ProcessBound
from landbridge.vm.code_image import load_image
from landbridge.vm.device_function import DeviceFunction
from landbridge.vm.device_kernels import LoadedKernels, device_of, load_kernels


class Module(ProcessBound, Mapping[str, Callable[..., Any]]):
    """The kernels of module ``index`` of ``executable`` that its main function calls, as functions by name.

    Of a program that was compiled from IR it has every function of that IR, those in rows of a scratchpad and of open
    extents left out, whether @main calls it or not.

    ``module["name"](*tensors)`` runs all tasks of a kernel on the calling thread: inputs first, then the
    destinations it writes, as Tensors, numpy arrays, torch tensors or anything else with ``__dlpack__``, on the
    CPU, dense, of the dtypes and shapes in ``kernels[name].operands``. What does not fit raises TypeError,
    ValueError or BufferError; nothing is copied or cast. ``kernels`` says of each what it takes. Kernels with operands
    in rows of a scratchpad are not among them: a tensor of tvm-ffi has one address, and they take one for each row.

    Kernels of a device are functions of Tensors on ``device``; what does not fit raises InputError.
    """

    _instead: ClassVar[str] = "pickle its Executable, and make a Module of that where it is used"

    def __init__(self, executable: Executable, index: int = 0, device: Device | str | None = None) -> None:
        """Makes the kernels callable; ``device`` runs those that are not CPU code: by default the thread's current one
        inside ``lb.set_device``, else the device of the target.

        Raises InputError for a module that does not exist, ExecutableError for code that cannot run here, BindError for
        a device that runs no such kernels.
        """
        if not 0 <= index < len(executable.modules):
            raise InputError(f"module {index} of an executable that has {len(executable.modules)}; they count from 0")
        self.kernels: Mapping[str, PackedKernel] = MappingProxyType(_kernels(executable, index))
        self._executable = executable
        created = executable.modules[index]
        self._functions: dict[str, Callable[..., Any]] = {}
        self._on_device: LoadedKernels | None = None
        if isinstance(created.image, DeviceImage):
            where = device or chosen_device() or device_of(created.target)
            if where is None:
                raise InputError("the module has kernels of a device that is not known here; name one with device=")
            self._on_device = load_kernels(created.image, find_device(where), created.target)
            return
        self._image = with_packed_functions(created.image, self.kernels)
        self._loaded = load_image(self._image)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """Returns the kernel called ``name``, which keeps the code alive; raises KeyError."""
        function = self._functions.get(name)
        if function is None:
            if name not in self.kernels:
                raise KeyError(f"no kernel is called {name!r}; there are: {', '.join(self.kernels) or 'none'}")
            kernel = self.kernels[name]
            if self._on_device is not None:
                function = DeviceFunction(self._on_device, kernel.function or name, kernel.operands)
                return self._functions.setdefault(name, function)
            try:
                import tvm_ffi
            except ImportError as error:
                raise UnsupportedError(
                    f"functions of a Module are tvm-ffi's, which does not import ({error}); install it with: "
                    "pip install 'landbridge[tvm-ffi]'"
                ) from error
            address = self._loaded.address(PREFIX + name)
            function = tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=self._loaded)
            self._functions[name] = function
        return function

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def export(self, path: str | Path) -> None:
        """Writes the kernels as a shared library that ``tvm_ffi.load_module(path)`` loads, without Landbridge.

        It needs the C library alone, and a CPU with the features of the target. Kernels of a device are launched by
        the runtime: of these the whole program is written, an ``.lbx`` file, which ``landbridge.load`` reads without a
        compiler and ``Module(loaded, index)`` has the same kernels of. Both are written as ``Executable.save`` writes.
        Raises ExecutableError for code of an instruction set that it cannot write, InputError for the kernels of a
        device in a file of another name than ``.lbx``.
        """
        if self._on_device is not None:
            if Path(path).suffix != ".lbx":
                raise InputError(
                    f"{path}: kernels of {self._on_device.device} are exported with their whole program, in a file "
                    "that ends in .lbx"
                )
            self._executable.save(path)
            return
        check_outputs([path], self._executable.sources)
        created = shared_library(self._image, [PREFIX + name for name in self.kernels])
        with open_output(path, self._executable.sources, executable=True) as file:
            file.write(created)


def _kernels(executable: Executable, index: int) -> dict[str, PackedKernel]:
    """Returns the operands of each kernel of module ``index``, from the instructions that call it."""
    kernels = _called(executable, executable.main, index)
    for name, function in executable.functions.items():
        if name.startswith(prefix := given_function("")):
            for called, kernel in _called(executable, function, index).items():
                kernels[name.removeprefix(prefix)] = replace(kernel, function=called)
    return kernels


def _called(executable: Executable, function: Function, index: int) -> dict[str, PackedKernel]:
    """Returns the operands of each kernel of module ``index`` that ``function`` calls."""
    tensors = dict(enumerate(spec.memory for spec in (*function.inputs, *function.outputs)))
    in_rows: set[int] = set()
    kernels: dict[str, PackedKernel] = {}
    needed = executable.scratch_bytes
    workspace = needed if needed > STACK_TEMPORARY_BYTES else 0
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
                operands = tuple(tensors[register] for register in args)
                kernels[name] = PackedKernel(tasks, operands, workspace)
    return kernels
