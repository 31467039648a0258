"""OpenCL C of loads, stores, and memory of a workgroup or a work-item; every access is aligned to its element."""

from __future__ import annotations

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.c.emitter import CEmitter, Printer
from landbridge.codegen.c.memory import address
from landbridge.codegen.c.types import CType, kind_of
from landbridge.codegen.grid import is_local
from landbridge.codegen.layout import is_image, span
from landbridge.codegen.opencl import images
from landbridge.codegen.opencl.lanes import truths
from landbridge.errors import CodegenError

_LANES = "0123456789abcdef"


def _load(e: CEmitter, op: Operation) -> None:
    ref, *indices = op.operands
    if isinstance(ref.type, MemRefType) and is_image(ref.type):
        images.load(e, op)
        return
    kind, pointer = e.kind(op.results[0]), address(e, ref, indices)
    if not kind.lanes:
        e.set(op.results[0], f"*{pointer}{' != 0' if kind.element == 'i1' else ''}")
        return
    text = f"vload{kind.lanes}(0, {pointer})"
    e.set(op.results[0], truths(f"{text} != (uchar)0", kind) if kind.element == "i1" else text)


def _store(e: CEmitter, op: Operation) -> None:
    value, ref, *indices = op.operands
    if isinstance(ref.type, MemRefType) and is_image(ref.type):
        images.store(e, op)
        return
    kind, pointer = e.kind(value), address(e, ref, indices)
    if kind.lanes:
        e.line(f"vstore{kind.lanes}({e.names[value]}, 0, {pointer});")
    else:
        e.line(f"*{pointer} = {e.names[value]};")


def _retained(e: CEmitter, mask: SSAValue) -> int:
    """Returns how many lanes, the first ones, a constant mask keeps."""
    first = e.retained.get(mask)
    if first is None:
        raise CodegenError("a mask that is not a constant of leading lanes has no OpenCL C form")
    return int(first)


def _parts(count: int) -> list[tuple[int, int]]:
    """Returns ``count`` lanes split into vectors and scalars: (first lane, lanes) of each."""
    parts, first = [], 0
    for lanes in (16, 8, 4, 2, 1):
        while count - first >= lanes:
            parts.append((first, lanes))
            first += lanes
    return parts


def _at(pointer: str, first: int) -> str:
    return f"{pointer} + {first}" if first else pointer


def _masked_load(e: CEmitter, op: Operation) -> None:
    ref, *indices, mask, other = op.operands
    kind, pointer = e.kind(op.results[0]), address(e, ref, indices)
    retained = _retained(e, mask)
    lanes = [
        f"vload{n}(0, {_at(pointer, first)})" if n > 1 else f"*({_at(pointer, first)})" for first, n in _parts(retained)
    ]
    rest = "".join(_LANES[retained : kind.lanes])
    if rest:
        lanes += [f"{e.names[other]}.s{lane}" for lane in rest]
    text = f"({kind.text})({', '.join(lanes)})"
    e.set(op.results[0], truths(f"{text} != (uchar)0", kind) if kind.element == "i1" else text)


def _masked_store(e: CEmitter, op: Operation) -> None:
    ref, *indices, mask, value = op.operands
    pointer = address(e, ref, indices)
    name = e.names[value]
    for first, n in _parts(_retained(e, mask)):
        lanes = f"{name}.s{_LANES[first : first + n]}"
        where = _at(pointer, first)
        e.line(f"vstore{n}({lanes}, 0, {where});" if n > 1 else f"*({where}) = {lanes};")


def _memory(e: CEmitter, op: Operation) -> None:
    """Declares local memory, or a work-item's own; both are reserved where the kernel begins."""
    result = op.results[0]
    ty = result.type
    assert isinstance(ty, MemRefType)
    if isinstance(op, memref.AllocOp) and not is_local(ty):
        raise CodegenError(f'memref.alloc of {ty} inside a launch; legal there: the scope "local"')
    name = e.names[result] = e.fresh()
    element: CType = kind_of(ty.element_type)
    location = "local " if is_local(ty) else ""
    e.entry_lines.append(f"  {location}{element.scalar} __attribute__((aligned(64))) {name}[{max(span(ty), 1)}];")


PRINTERS: dict[type[Operation], Printer] = {
    memref.LoadOp: _load,
    memref.StoreOp: _store,
    memref.AllocOp: _memory,
    memref.AllocaOp: _memory,
    vector.LoadOp: _load,
    vector.StoreOp: _store,
    vector.MaskedLoadOp: _masked_load,
    vector.MaskedStoreOp: _masked_store,
}
