"""Prints the kernel of one launch as OpenCL C text."""

from __future__ import annotations

from importlib.resources import files

from xdsl.dialects import gpu
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.vector import BroadcastOp, ExtractOp, InsertOp, ReductionOp, ShuffleOp
from xdsl.ir import Operation

from landbridge.codegen.c import control, vector
from landbridge.codegen.c.emitter import CEmitter, Printer
from landbridge.codegen.c.types import kind_of
from landbridge.codegen.grid import GridKernel
from landbridge.codegen.layout import is_image
from landbridge.codegen.opencl import arith, images, memory
from landbridge.codegen.opencl.unit import OpenCLUnit
from landbridge.codegen.printing import axis


def _id(function: str) -> Printer:
    def emit(e: CEmitter, op: Operation) -> None:
        e.set(op.results[0], f"(lb_index){function}({axis(op)})")

    return emit


def _barrier(e: CEmitter, op: Operation) -> None:
    e.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")


def _nothing(e: CEmitter, op: Operation) -> None:
    pass


PRINTERS: dict[type[Operation], Printer] = {
    **arith.PRINTERS,
    **memory.PRINTERS,
    **{op: vector.PRINTERS[op] for op in (BroadcastOp, ReductionOp, ExtractOp, InsertOp, ShuffleOp)},
    **control.PRINTERS,
    gpu.BlockIdOp: _id("get_group_id"),
    gpu.ThreadIdOp: _id("get_local_id"),
    gpu.BarrierOp: _barrier,
    gpu.TerminatorOp: _nothing,
}


def text_of(file: str) -> str:
    """Returns an OpenCL C file of this package."""
    return files(__package__).joinpath(file).read_text(encoding="utf-8")


def print_kernel(unit: OpenCLUnit, kernel: GridKernel) -> str:
    """Returns the kernel function; its workgroup size is part of it. Raises CodegenError for what has no OpenCL C
    form.
    """
    e = CEmitter(unit, PRINTERS)
    parameters = []
    for buffer in kernel.buffers:
        ty = buffer.type
        assert isinstance(ty, MemRefType)
        name = e.names[buffer] = e.fresh()
        if is_image(ty):
            parameters.append(f"{images.parameter(kernel, buffer)} {name}")
            continue
        const = "" if buffer in kernel.stored else "const "
        restrict = "" if kernel.in_place else "restrict "
        parameters.append(f"global {const}{kind_of(ty.element_type).scalar} *{restrict}{name}")
    e.region(kernel.body.ops)
    x, y, z = kernel.block
    head = f"kernel __attribute__((reqd_work_group_size({x}, {y}, {z}))) void {kernel.name}({', '.join(parameters)}) {{"
    return "\n".join([head, *e.entry_lines, *e.lines, "}", ""])
