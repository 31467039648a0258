"""LLVM IR of loads, stores and stack memory; every access is aligned to its element only."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, MemRefType
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.llvm.carried_pointers import carried_pointer
from landbridge.codegen.llvm.emitter import UNCHANGING, LlvmEmitter, Printer
from landbridge.codegen.llvm.types import (
    MemRefView,
    element_of,
    extent_bytes,
    lanes_of,
    splat,
    suffix,
    with_element,
)
from landbridge.ir.prim_ops import OrderLoadsOp, PrefetchOp

#: Bytes behind a base within which AArch64 loads a pair of vectors at once (LDP).
_PAIRS_REACH = 1024


def address(e: LlvmEmitter, ref: SSAValue, indices: Sequence[SSAValue], in_bounds: bool) -> tuple[str, MemRefView]:
    """Returns the name of the element's pointer, and the MemRefView of its memref.

    Terms are summed outermost loop first and constants last, so that the sums that do not change in an inner
    loop are the same values for all its accesses; equal sums are emitted once per region.
    """
    view = e.view(ref.type)
    pointer = e.names[ref]
    if view.in_rows:
        row, *indices = indices
        slot = _element(e, pointer, "i64", [row], (1,), 0, in_bounds, 8)
        pointer = e.once(f"load ptr, ptr {slot}, align 8, !invariant.load {UNCHANGING}")
    return _element(e, pointer, view.element, indices, view.strides, view.offset, in_bounds, view.align), view


def _element(
    e: LlvmEmitter,
    pointer: str,
    element: str,
    indices: Sequence[SSAValue],
    strides: Sequence[int],
    constant: int,
    in_bounds: bool,
    nbytes: int,
) -> str:
    """Returns the pointer to one of the elements from ``pointer`` on."""
    carried = carried_pointer(e, pointer, indices, strides, constant * nbytes, nbytes)
    if carried is not None:
        return carried
    terms: list[tuple[int, str, int]] = []
    for index, stride in zip(indices, strides, strict=True):
        name = e.names[index]
        if name[0] != "%":
            constant += int(name) * stride
            continue
        base, more = e.offsets.get(name, (name, 0))
        constant += more * stride
        terms.append((e.depths.get(base, 0), base, stride))
    terms.sort(key=lambda t: t[0])
    total = ""
    for _, base, stride in terms:
        term = base if stride == 1 else e.once(f"mul nsw i64 {base}, {stride}", base)
        total = term if not total else e.once(f"add nsw i64 {total}, {term}", total, term)
    # Nothing is known of an index under a mask, nor of the pointer before a constant is added: no inbounds.
    inside = "inbounds " if in_bounds and not (total and constant) else ""
    opcode = f"getelementptr {inside}{element}, ptr"
    if total and constant * nbytes < -e.module.isa.reach_back < 0:
        pointer, back = _moved_back(e, pointer, constant * nbytes)
        constant -= back // nbytes
    if total:
        pointer = e.once(f"{opcode} {pointer}, i64 {total}", pointer, total)
    if constant:
        pointer = e.once(f"{opcode} {pointer}, i64 {constant}", pointer)
    return pointer


def _moved_back(e: LlvmEmitter, pointer: str, offset: int) -> tuple[str, int]:
    """Returns a pointer at or before the location ``offset`` bytes from ``pointer``, and its offset, which accesses
    share.

    LLVM adds constants last, separately in each access, if instructions cannot encode them. The offset of this pointer
    is hidden from LLVM.
    """
    bases = e.moved_back.setdefault(pointer, [])
    back = next((b for b in bases if 0 <= offset - b < _PAIRS_REACH), None)
    if back is None:
        back = offset
        bases.append(back)
    name = e.at_entry(f'call i64 asm "", "=r,0"(i64 {back}) nounwind memory(none)')
    return e.once(f"getelementptr i8, ptr {pointer}, i64 {name}", pointer), back


def _load(e: LlvmEmitter, op: Operation) -> None:
    ref, *indices = op.operands
    result = op.results[0]
    pointer, view = address(e, ref, indices, in_bounds=True)
    kind = e.type(result.type)
    if view.is_bool:
        in_memory = with_element(kind, "i8")
        byte = e.emit(f"load {in_memory}, ptr {pointer}, align 1")
        e.set(result, f"icmp ne {in_memory} {byte}, {splat(0, in_memory)}")
    else:
        e.set(result, f"load {kind}, ptr {pointer}, align {view.align}")
        if kind == "i64":
            e.depths[e.names[result]] = e.depth


def _store(e: LlvmEmitter, op: Operation) -> None:
    value, ref, *indices = op.operands
    pointer, view = address(e, ref, indices, in_bounds=True)
    kind, name = e.type(value.type), e.names[value]
    if view.is_bool:
        kind, name = _to_bytes(e, kind, name)
    e.line(f"store {kind} {name}, ptr {pointer}, align {view.align}")


def _to_bytes(e: LlvmEmitter, kind: str, name: str) -> tuple[str, str]:
    in_memory = with_element(kind, "i8")
    return in_memory, e.emit(f"zext {kind} {name} to {in_memory}")


def _masked_load(e: LlvmEmitter, op: Operation) -> None:
    ref, *indices, mask, other = op.operands
    result = op.results[0]
    pointer, view = address(e, ref, indices, in_bounds=False)
    kind, fill = e.type(result.type), e.names[other]
    in_memory = with_element(kind, "i8") if view.is_bool else kind
    if view.is_bool:
        in_memory, fill = _to_bytes(e, kind, fill)
    lanes = f"<{lanes_of(kind)} x i1>"
    symbol = f"llvm.masked.load.{suffix(in_memory)}.p0"
    e.module.declare(symbol, in_memory, ["ptr", lanes, in_memory])
    call = f"call {in_memory} @{symbol}(ptr align {view.align} {pointer}, {lanes} {e.names[mask]}, {in_memory} {fill})"
    if view.is_bool:
        e.set(result, f"icmp ne {in_memory} {e.emit(call)}, {splat(0, in_memory)}")
    else:
        e.set(result, call)


def _masked_store(e: LlvmEmitter, op: Operation) -> None:
    ref, *indices, mask, value = op.operands
    pointer, view = address(e, ref, indices, in_bounds=False)
    kind, name = e.type(value.type), e.names[value]
    if view.is_bool:
        kind, name = _to_bytes(e, kind, name)
    if (lane := _only_lane(mask)) is not None:
        # LLVM 22 writes all four bytes of such a lane that is truncated, where AVX-512 has byte masks.
        element = e.emit(f"extractelement {kind} {name}, i64 {lane}")
        location = e.emit(f"getelementptr {element_of(kind)}, ptr {pointer}, i64 {lane}") if lane else pointer
        e.line(f"store {element_of(kind)} {element}, ptr {location}, align {view.align}")
        return
    lanes = f"<{lanes_of(kind)} x i1>"
    symbol = f"llvm.masked.store.{suffix(kind)}.p0"
    e.module.declare(symbol, "void", [kind, "ptr", lanes])
    e.line(f"call void @{symbol}({kind} {name}, ptr align {view.align} {pointer}, {lanes} {e.names[mask]})")


def _only_lane(mask: SSAValue) -> int | None:
    """Returns the only lane in which the constant ``mask`` is true; None for another number of lanes."""
    op = mask.owner
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, DenseIntOrFPElementsAttr):
        return None
    true = [lane for lane, value in enumerate(op.value.get_values()) if value]
    return true[0] if len(true) == 1 else None


def _prefetch(e: LlvmEmitter, op: Operation) -> None:
    """Prints a prefetch for a later read."""
    ref, *indices = op.operands
    pointer, _ = address(e, ref, indices, in_bounds=False)
    e.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
    locality = 2 if "beyond_l1" in op.attributes else 3
    e.line(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 {locality}, i32 1)")


def _order_loads(e: LlvmEmitter, op: Operation) -> None:
    """Prints a fence between a thread and itself, which LLVM's schedulers respect and which is no instruction."""
    e.line('fence syncscope("singlethread") seq_cst')


def _alloca(e: LlvmEmitter, op: Operation) -> None:
    """Allocates stack memory once at function entry, however often the operation runs; none for memory that is passed
    in.
    """
    if op in e.given:
        return
    result = op.results[0]
    kind = result.type
    view = e.view(kind)
    assert isinstance(kind, MemRefType)
    declared = op.properties.get("alignment")
    align = declared.value.data if isinstance(declared, IntegerAttr) else 64
    name = e.define(result)
    count = max(1, extent_bytes(kind) // view.align)
    e.entry_lines.append(f"  {name} = alloca [{count} x {view.element}], align {align}")


PRINTERS: dict[type[Operation], Printer] = {
    memref.LoadOp: _load,
    memref.StoreOp: _store,
    memref.AllocaOp: _alloca,
    PrefetchOp: _prefetch,
    OrderLoadsOp: _order_loads,
    vector.LoadOp: _load,
    vector.StoreOp: _store,
    vector.MaskedLoadOp: _masked_load,
    vector.MaskedStoreOp: _masked_store,
}
