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


def _retained(e: CEmitter, mask: SSAValue) -> int | None:
    """Returns how many lanes, the first ones, a constant mask keeps; None for any other mask."""
    first = e.retained.get(mask, "")
    return int(first) if first.isdecimal() else None


def _create_mask(e: CEmitter, op: Operation) -> None:
    """Prints the mask of a number of leading lanes that is known at run time."""
    kind, count = e.kind(op.results[0]), e.names[op.operands[0]]
    numbers = e.unit.use(kind.of("s32"))
    counting = e.unit.vector(numbers, [str(i) for i in range(kind.lanes)])
    clamped = f"(int)({count} < {kind.lanes} ? {count} : {kind.lanes})"
    e.set(op.results[0], truths(f"{counting} < ({numbers.text}){clamped}", kind))
    e.retained[op.results[0]] = count


def _by_lanes(e: CEmitter, mask: SSAValue, lanes: int, one: str) -> str:
    """Returns code that does ``one`` for each lane ``i`` that ``mask`` keeps."""
    first = e.retained.get(mask)
    if first is not None:
        return f"for (lb_index i = 0; i < {first}; ++i) {one}"
    keeps = e.fresh()
    return (
        f"uchar {keeps}[{lanes}]; vstore{lanes}({e.names[mask]}, 0, {keeps}); "
        f"for (int i = 0; i < {lanes}; ++i) if ({keeps}[i]) {one}"
    )


def _if_all(e: CEmitter, mask: SSAValue, lanes: int, whole: str) -> str:
    """Returns code that does ``whole`` if the mask is known to keep all lanes, and else what follows."""
    first = e.retained.get(mask)
    return f"if ({first} >= {lanes}) {whole} else " if first is not None else ""


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
    if retained is None:
        name, each = e.variable(op.results[0], e.names[other]), e.fresh()
        fill = f"{kind.scalar} {each}[{kind.lanes}]; vstore{kind.lanes}({name}, 0, {each});"
        loads = _by_lanes(e, mask, kind.lanes, f"{each}[i] = ({pointer})[i];")
        whole = f"{name} = vload{kind.lanes}(0, {pointer});"
        e.line(f"{_if_all(e, mask, kind.lanes, whole)}{{ {fill} {loads} {name} = vload{kind.lanes}(0, {each}); }}")
        if kind.element == "i1":
            e.line(f"{name} = {truths(f'{name} != (uchar)0', kind)};")
        return
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
    name, retained = e.names[value], _retained(e, mask)
    if retained is None:
        kind, each = e.kind(value), e.fresh()
        all_lanes = f"vstore{kind.lanes}({name}, 0, {each});"
        stores = _by_lanes(e, mask, kind.lanes, f"({pointer})[i] = {each}[i];")
        whole = f"vstore{kind.lanes}({name}, 0, {pointer});"
        e.line(f"{_if_all(e, mask, kind.lanes, whole)}{{ {kind.scalar} {each}[{kind.lanes}]; {all_lanes} {stores} }}")
        return
    for first, n in _parts(retained):
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
    vector.CreateMaskOp: _create_mask,
}
