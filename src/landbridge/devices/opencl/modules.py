"""OpenCLModule: programs that the driver built, and launches of their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from landbridge.device.api import Region
from landbridge.devices.opencl.blocks import MEMORY_BLOCKS, ImageBlock, MemoryBlock
from landbridge.devices.opencl.driver_errors import driver_call, translated
from landbridge.devices.opencl.events import QueueEvent
from landbridge.devices.opencl.instance import OpenCLInstance, Queue
from landbridge.devices.opencl.mapping import end_all
from landbridge.devices.opencl.programs import BuiltProgram, ParameterTypes, Place, build
from landbridge.errors import DeviceError, InputError, KernelBuildError, OutOfMemoryError
from landbridge.process.locks import new_lock

_FORMATS = ("opencl-c", "spirv")

Argument = Region | int | float | np.generic
Grid = tuple[int, int, int]

# The scalar types of OpenCL C (specification, section 6.3.1), whose sizes are the same on every device.
_SCALARS = {
    name: np.dtype(numpy)
    for name, numpy in {
        "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "long": "i8",
        "ulong": "u8", "half": "f2", "float": "f4", "double": "f8",
    }.items()
}  # fmt: skip


class KernelFunction:
    """One kernel of a program. ``lock`` is held from setting its arguments to queueing it, as they are its state.

    ``types`` are the names of its parameters' types, None where the driver does not report one.
    """

    def __init__(self, kernel: cl.Kernel, types: ParameterTypes) -> None:
        self.kernel = kernel
        self.lock = new_lock()
        self.count: int = kernel.num_args
        #: The dtype of each scalar parameter where the driver reports it; None for pointers and for what it does not.
        self.scalars = tuple(_SCALARS.get(name) if name else None for name in types)


class OpenCLModule:
    """A program built for ``instance``."""

    def __init__(self, instance: OpenCLInstance, built: BuiltProgram) -> None:
        self.instance = instance
        self.program = built.program
        self._built = built
        self._functions: dict[str, KernelFunction] = {}

    def function(self, name: str) -> KernelFunction:
        """Returns the kernel called ``name``; raises DeviceError that names the existing ones."""
        known = self._functions.get(name)
        if known is None:
            kernel = self.new_kernel(name)
            known = self._functions.setdefault(name, KernelFunction(kernel, self._built.parameters_of(kernel)))
            self._built.note_launch()
        return known

    def new_kernel(self, name: str) -> cl.Kernel:
        """Returns a new kernel object, with arguments of its own."""
        try:
            return cl.Kernel(self.program, name)
        except cl.Error as error:
            names = sorted(kernel.function_name for kernel in self.program.all_kernels())
            raise DeviceError(
                f"the OpenCL module has no kernel {name!r} ({error}); it has: {', '.join(names) or 'none'}"
            ) from error


def formats(instance: OpenCLInstance) -> tuple[str, ...]:
    """Returns the formats that ``load`` accepts for ``instance``."""
    return _FORMATS if _takes_il(instance) else _FORMATS[:1]


def load(instance: OpenCLInstance, binary: bytes, format: str, options: str) -> OpenCLModule:
    """Build ``binary`` for ``instance``; raises KernelBuildError with source and log, InputError for a format."""
    if format not in _FORMATS:
        raise InputError(f"opencl:{instance.index} loads no modules of format {format!r}; legal: {', '.join(_FORMATS)}")
    source: str | None = None
    if format == "opencl-c":
        try:
            source = binary.decode()
        except UnicodeDecodeError as error:
            raise KernelBuildError(f"opencl:{instance.index}: this is not text in UTF-8: {error}") from error
    elif not _takes_il(instance):
        raise KernelBuildError(
            f"opencl:{instance.index} ({instance.device.name.strip()}) takes no SPIR-V (no cl_khr_il_program, "
            "CL_DEVICE_IL_VERSION is empty); compile for target 'opencl', whose code is OpenCL C"
        )
    words = [*options.split(), *(source_options(instance.device) if source is not None else [])]
    place = Place(f"opencl:{instance.index} ({instance.device.name.strip()})", instance.device, instance.context)
    return OpenCLModule(instance, build(place, binary, source, " ".join(words)))


def source_options(device: cl.Device) -> list[str]:
    """Returns the options that every program in OpenCL C is built with on ``device``.

    Types of scalar arguments are queried from the driver, which keeps them only with an option. Quotients may be off by
    2.5 units of the last place unless correct rounding is requested, which only devices may be that declare it (OpenCL
    C 3.0 specification, section "Relative Error as ULPs"); quantized values would be rounded to other numbers.
    """
    rounded = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    return ["-cl-kernel-arg-info", *(["-cl-fp32-correctly-rounded-divide-sqrt"] if rounded else [])]


def _takes_il(instance: OpenCLInstance) -> bool:
    try:
        return bool(str(instance.device.il_version).strip("\0 "))
    except cl.Error:  # before OpenCL 2.1
        return "cl_khr_il_program" in instance.device.extensions.split()


def launch(
    queue: Queue, module: OpenCLModule, name: str, grid: Grid, block: Grid, args: Sequence[Argument]
) -> QueueEvent | None:
    """Queue ``grid`` workgroups of ``block`` work-items; returns None while a recording takes them instead."""
    if queue.instance.device != module.instance.device:
        raise InputError(
            f"kernel {name!r} was loaded on opencl:{module.instance.index} and launched on "
            f"opencl:{queue.instance.index}; load the module there, too"
        )
    function = module.function(name)
    values, blocks = bound(queue.instance, name, function, args)
    _check_shape(queue.instance, name, grid, block)
    if queue.recorder is not None:
        queue.recorder.add_launch(module, name, grid, block, tuple(args))
        return None
    with function.lock, driver_call(f"a launch of {name!r}"):
        set_arguments(function.kernel, values)
        event = enqueue(queue, function.kernel, name, grid, block)
    return queue.submitted(event, blocks, values)


def enqueue(queue: Queue, kernel: cl.Kernel, name: str, grid: Grid, block: Grid) -> cl.Event:
    """Queue a kernel whose arguments are set."""
    try:
        return cl.enqueue_nd_range_kernel(queue.cl, kernel, grid, block, g_times_l=True)
    except cl.Error as error:
        if error.code == cl.status_code.OUT_OF_RESOURCES:
            limit = kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, queue.instance.device)
            raise OutOfMemoryError(
                f"kernel {name!r} with a block of {block} needs more registers or local memory than "
                f"opencl:{queue.instance.index} has: it allows this kernel {limit} work-items a workgroup; compile "
                f"with a smaller -max-workgroup-size or -local-memory-bytes"
            ) from error
        raise translated(f"a launch of {name!r} with grid {grid} and block {block}", error) from error


def bound(
    instance: OpenCLInstance, name: str, function: KernelFunction, args: Sequence[Argument]
) -> tuple[list[Any], tuple[MemoryBlock, ...]]:
    """Returns ``args`` as the driver takes them, and the blocks among them; raises InputError where they do not fit."""
    if len(args) != function.count:
        raise InputError(f"kernel {name!r} takes {function.count} arguments; {len(args)} were given")
    values: list[Any] = []
    blocks: list[MemoryBlock] = []
    for number, argument in enumerate(args):
        if isinstance(argument, Region):
            block = argument.space.handle
            if not isinstance(block, MEMORY_BLOCKS) or block.context != instance.context:
                raise InputError(
                    f"argument {number} of kernel {name!r} is memory of {argument.space.device}, which "
                    f"opencl:{instance.index} does not reach; import it, or copy it there"
                )
            values.append(kernel_value(instance, block, argument.byte_offset))
            blocks.append(block)
        else:
            values.append(_scalar(name, number, function.scalars[number], argument))
    return values, tuple(blocks)


def kernel_value(instance: OpenCLInstance, block: MemoryBlock, byte_offset: int) -> Any:
    """Returns the kernel argument for ``block`` from ``byte_offset`` on, after ending mappings of it."""
    block.check(byte_offset, 0)
    if isinstance(block, ImageBlock):
        if byte_offset:
            raise InputError(f"a kernel is given whole images; byte offset {byte_offset} of one is not legal")
        return block.image
    if block.mappings:
        end_all(instance, block)
    value = block.part(byte_offset, instance.base_alignment)
    if block.is_divided:
        instance.divided.add(block)
    return value


def set_arguments(kernel: cl.Kernel, values: Sequence[Any]) -> None:
    """Set all arguments of ``kernel``; whoever queues it keeps ``values`` alive until it is done."""
    for number, value in enumerate(values):
        kernel.set_arg(number, value)


def _scalar(name: str, number: int, dtype: np.dtype[Any] | None, value: object) -> np.generic:
    if isinstance(value, np.generic):
        return value
    if dtype is None:
        raise InputError(
            f"argument {number} of kernel {name!r} is {value!r}, and the driver does not say which type it has; give a "
            "numpy scalar, as in np.int32(3), or a Region"
        )
    try:
        return dtype.type(value)  # type: ignore[no-any-return]
    except (OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"argument {number} of kernel {name!r} is {value!r}; legal: a number of type {dtype}"
        ) from error


def _check_shape(instance: OpenCLInstance, name: str, grid: Grid, block: Grid) -> None:
    sizes = instance.device.max_work_item_sizes
    legal = len(grid) == len(block) == 3 and min((*grid, *block)) > 0
    if not legal or block[0] * block[1] * block[2] > instance.device.max_work_group_size:
        raise InputError(
            f"kernel {name!r} with grid {grid} and block {block}; legal: three numbers over 0 each, and at most "
            f"{instance.device.max_work_group_size} work-items in a block"
        )
    if any(requested > most for requested, most in zip(block, sizes, strict=False)):
        raise InputError(f"kernel {name!r} with block {block}; opencl:{instance.index} allows at most {tuple(sizes)}")
