"""Makes a device image of a module of lowered functions: one SPIR-V module with an entry point for each kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation

from landbridge.codegen.functions import errors_of
from landbridge.codegen.grid import GridFunction, GridKernel, grid_functions, is_written
from landbridge.codegen.layout import is_image
from landbridge.codegen.vulkan import arith, casts, control, images, math, memory
from landbridge.codegen.vulkan.emitter import MemoryVariable, Printer, SpirvEmitter
from landbridge.codegen.vulkan.module_builder import SpirvModule
from landbridge.errors import CodegenError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.spirv import Op, StorageClass
from landbridge.targets.grid import most_binding_bytes

if TYPE_CHECKING:
    from landbridge.targets.target import Target

PRINTERS: dict[type[Operation], Printer] = {
    **arith.PRINTERS,
    **casts.PRINTERS,
    **math.PRINTERS,
    **memory.PRINTERS,
    **images.PRINTERS,
    **control.PRINTERS,
}


def generate_image(module: ModuleOp, target: Target) -> DeviceImage:
    """Returns the kernels of all functions of ``module``; raises CodegenError."""
    functions = grid_functions(module)
    spirv = SpirvModule(preserve_nan=target.options.get("preserve-nan") is True)
    for function in functions:
        for kernel in function.kernels:
            _emit(spirv, function, kernel, target)
    if not any(function.kernels for function in functions):  # a module must have an entry point
        spirv.entry_point("nothing", (), (1, 1, 1), [], [])
    return DeviceImage(format="spirv", code=spirv.binary(), functions={f.name: f.sequence for f in functions})


def _emit(module: SpirvModule, function: GridFunction, kernel: GridKernel, target: Target) -> None:
    placed = [b for b in kernel.buffers if isinstance(b.type, MemRefType) and is_image(b.type)]
    flat = [buffer for buffer in kernel.buffers if buffer not in placed]
    written = [image for image in placed if is_written(kernel, image)]
    for option, subject, count in (
        ("max-storage-buffers", "buffers", len(flat)),
        ("max-storage-images", "images to write", len(written)),
        ("max-sampled-images", "images to read", len(placed) - len(written)),
    ):
        most = target.options.get(option)
        if isinstance(most, int) and count > most:
            raise CodegenError(
                f"function {function.name!r}: kernel {kernel.name!r} uses {count} {subject}; target {target.kind!r} "
                f"states -{option}={most}{'' if subject == 'buffers' else '; place fewer of its tensors in images'}"
            )
    doubles = target.options.get("fp64") is True and target.options.get("int64") is True
    rounds = target.options.get("rounded-quotients") is True
    index = "i64" if kernel.is_large(most_binding_bytes(target)) else "i32"
    e = SpirvEmitter(module, PRINTERS, index, doubles=doubles, rounds_quotients=rounds)
    starts = iter(_starts(e, len(flat)))
    for binding, buffer in enumerate(kernel.buffers):
        if buffer in placed:
            images.declare(e, buffer, binding, written=buffer in written)
            continue
        element = index if buffer is kernel.words else memory.stored_element(e, buffer)
        variable = module.buffer(
            element,
            binding,
            read_only=buffer not in kernel.stored,
            restrict=not kernel.in_place,
            exchanged=buffer in kernel.exchanged,
        )
        e.memory[buffer] = MemoryVariable(
            variable, element, StorageClass.StorageBuffer, next(starts), is_words=buffer is kernel.words
        )
        e.interface[variable] = None
    with errors_of(function.name):
        e.region(kernel.body.ops)
    module.entry_point(kernel.name, list(e.interface), kernel.block, e.variables, e.body)


def _starts(e: SpirvEmitter, count: int) -> list[int]:
    """Returns the number of the first element of each buffer: descriptors begin at multiples of the device's alignment,
    tensors anywhere, and push constants hold the difference.
    """
    if not count:
        return []
    pointer, variable = e.module.starts(count)
    e.interface[variable] = None
    found = []
    for i in range(count):
        location = e.module.fresh()
        e.statement(Op.AccessChain, pointer, location, variable, e.constant(i, "i32"))
        found.append(casts.resized(e, e.emit(Op.Load, "i32", location), "i32", e.index, signed=False))
    return found
