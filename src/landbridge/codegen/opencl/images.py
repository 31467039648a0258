"""OpenCL C of images: whole pixels, found by column and row (OpenCL C 3.0 specification, section 6.15.15)."""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.c.emitter import CEmitter
from landbridge.codegen.c.types import CType, kind_of
from landbridge.codegen.grid import GridKernel, is_written
from landbridge.codegen.layout import is_image
from landbridge.codegen.opencl.unit import ELEMENTS
from landbridge.errors import CodegenError
from landbridge.ir.types import dtype_of, shape_of

#: By dtype: the ending of OpenCL C's functions, and the four numbers that they take and give.
_ACCESSES = {
    "float32": ("f", "float4"),
    "float16": ("f", "float4"),
    "int32": ("i", "int4"),
    "int8": ("i", "int4"),
}


def parameter(kernel: GridKernel, image: SSAValue) -> str:
    """Returns the type of a kernel's argument; raises CodegenError for an image that it both reads and writes."""
    return f"{'write' if is_written(kernel, image) else 'read'}_only image2d_t"


def load(e: CEmitter, op: Operation) -> None:
    """Prints a load of a pixel, or of one element of it."""
    image, row, pixel, lane = op.operands
    kind, (ending, four) = kind_of(op.results[0].type), _access(image)
    lanes = shape_of(image.type)[2]
    name = e.fresh()
    e.line(f"const {four} {name} = read_image{ending}({e.names[image]}, (int2)({e.names[pixel]}, {e.names[row]}));")
    if kind.lanes:
        values = [_element(kind, f"{name}.s{n}") for n in range(lanes)]
        e.set(op.results[0], f"({e.kind(op.results[0]).text})({', '.join(values)})")
    else:
        e.set(op.results[0], _element(kind, f"{name}.s0" if lanes == 1 else f"{name}[{e.names[lane]}]"))


def store(e: CEmitter, op: Operation) -> None:
    """Prints a store of a pixel; raises CodegenError for a part of one."""
    value, image, row, pixel, _ = op.operands
    kind, (ending, four) = kind_of(value.type), _access(image)
    if max(kind.lanes, 1) != shape_of(image.type)[2]:
        raise CodegenError(f"{max(kind.lanes, 1)} elements are stored in {image.type}; legal: whole pixels")
    name = e.names[value]
    lanes = [f"{name}.s{n}" for n in range(kind.lanes)] or [name]
    values = [_number(kind, lane) for lane in lanes] + ["0"] * (4 - len(lanes))
    where = f"(int2)({e.names[pixel]}, {e.names[row]})"
    e.line(f"write_image{ending}({e.names[image]}, {where}, ({four})({', '.join(values)}));")


def _access(image: SSAValue) -> tuple[str, str]:
    assert isinstance(image.type, MemRefType) and is_image(image.type)
    found = _ACCESSES.get(dtype_of(image.type))
    if found is None:
        raise CodegenError(f"{image.type}; images hold {', '.join(_ACCESSES)}")
    return found


def _element(kind: CType, text: str) -> str:
    """Returns the number of a pixel as its element type."""
    return f"lb_f32_to_f16({text})" if kind.is_narrow else f"({ELEMENTS[kind.element]})({text})"


def _number(kind: CType, text: str) -> str:
    """Returns an element as the number type of a pixel."""
    if kind.is_narrow:
        return f"lb_f16_to_f32({text})"
    return text if kind.is_float else f"({ELEMENTS[f's{kind.bits}']})({text})"
