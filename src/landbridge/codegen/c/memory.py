"""C of loads, stores and stack memory; every access is aligned to its element only."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.c import lanes
from landbridge.codegen.c.emitter import CEmitter, Printer
from landbridge.codegen.c.types import CType, kind_of, lane
from landbridge.codegen.layout import is_row_table, span, strides_and_offset
from landbridge.errors import CodegenError


def address(e: CEmitter, ref: SSAValue, indices: Sequence[SSAValue]) -> str:
    """Returns the pointer to an element."""
    kind, pointer = ref.type, e.names[ref]
    if not isinstance(kind, MemRefType):
        raise CodegenError(f"{kind} is not a memref")
    if is_row_table(kind):
        row, *indices = indices
        pointer = f"{pointer}[{e.names[row]}]"
        if e.unit.holds_words:
            pointer = f"(({kind_of(kind.element_type).scalar} *)(uintptr_t){pointer})"
    strides, offset = ((1,), 0) if is_row_table(kind) else strides_and_offset(kind)
    terms = [
        name if stride == 1 else f"{name} * {stride}"
        for name, stride in zip((e.names[i] for i in indices), strides, strict=True)
        if name != "0"
    ]
    total = " + ".join([*terms, *([str(offset)] if offset else [])])
    return f"({pointer} + ({total}))" if total else pointer


def _load(e: CEmitter, op: Operation) -> None:
    ref, *indices = op.operands
    kind, pointer = e.kind(op.results[0]), address(e, ref, indices)
    if kind.lanes:
        e.set(op.results[0], f"{_vector_load(e, kind)}({pointer})")
    else:
        e.set(op.results[0], f"*{pointer}{' != 0' if kind.element == 'i1' else ''}")


def _vector_load(e: CEmitter, kind: CType) -> str:
    name = f"lb_load_{kind.text}"
    slow = (
        f"LB_INLINE {kind.text} {name}(const {kind.scalar} *p) {{ {kind.text} r; memcpy(&r, p, sizeof r); return r; }}"
    )
    if kind.element == "i1":  # a byte that is not 0 is true
        native = lanes.truths(f"*(const {kind.text}_at *)p != 0", kind) if kind.is_native else None
        text = lanes.helper(name, [], kind, lambda _: "p[i] != 0", native, arguments="const uint8_t *p")
    elif kind.is_native:
        text = f"#if LB_VECTOR_TYPES\n#define {name}(p) (*(const {kind.text}_at *)(p))\n#else\n{slow}\n#endif"
    else:
        text = slow
    return e.unit.define(name, lambda: text)


def _store(e: CEmitter, op: Operation) -> None:
    value, ref, *indices = op.operands
    kind, pointer = e.kind(value), address(e, ref, indices)
    if not kind.lanes:
        e.line(f"*{pointer} = {e.names[value]};")
        return
    name = f"lb_store_{kind.text}"
    slow = f"LB_INLINE void {name}({kind.scalar} *p, {kind.text} a) {{ memcpy(p, &a, sizeof a); }}"
    fast = f"#if LB_VECTOR_TYPES\n#define {name}(p, a) (*({kind.text}_at *)(p) = (a))\n#else\n{slow}\n#endif"
    e.unit.define(name, lambda: fast if kind.is_native else slow)
    e.line(f"{name}({pointer}, {e.names[value]});")


def _retained(e: CEmitter, mask: SSAValue) -> tuple[str, str, str, str]:
    """Returns the form of the lanes that ``mask`` keeps for helpers: a word, its type as ``m``, their loop; and its C
    text.
    """
    kind, first = e.kind(mask), e.retained.get(mask)
    if first is not None:
        return "first", "int64_t", f"for (int i = 0; i < {kind.lanes} && i < m; ++i)", first
    loop = f"for (int i = 0; i < {kind.lanes}; ++i) if ({lane(kind, 'm', 'i')})"
    return "masked", kind.text, loop, e.names[mask]


def _masked_load(e: CEmitter, op: Operation) -> None:
    ref, *indices, mask, other = op.operands
    kind, pointer = e.kind(op.results[0]), address(e, ref, indices)
    retained, keep, body, given = _retained(e, mask)
    name = f"lb_load_{retained}_{kind.text}"
    value = "p[i] != 0" if kind.element == "i1" else "p[i]"
    text = (
        f"LB_INLINE {kind.text} {name}(const {kind.scalar} *p, {keep} m, {kind.text} r) {{\n"
        f"  {body} {lane(kind, 'r', 'i')} = {value};\n  return r;\n}}"
    )
    e.unit.define(name, lambda: text)
    e.set(op.results[0], f"{name}({pointer}, {given}, {e.names[other]})")


def _masked_store(e: CEmitter, op: Operation) -> None:
    ref, *indices, mask, value = op.operands
    kind, pointer = e.kind(value), address(e, ref, indices)
    retained, keep, body, given = _retained(e, mask)
    name = f"lb_store_{retained}_{kind.text}"
    text = (
        f"LB_INLINE void {name}({kind.scalar} *p, {keep} m, {kind.text} a) {{\n"
        f"  {body} p[i] = {lane(kind, 'a', 'i')};\n}}"
    )
    e.unit.define(name, lambda: text)
    e.line(f"{name}({pointer}, {given}, {e.names[value]});")


def _alloca(e: CEmitter, op: Operation) -> None:
    """Declares stack memory once at function entry, however often the operation runs; none for memory that is passed
    in.
    """
    if op in e.given:
        return
    result = op.results[0]
    kind = result.type
    assert isinstance(kind, MemRefType)
    declared = op.properties.get("alignment")
    align = min(declared.value.data if isinstance(declared, IntegerAttr) else 64, e.unit.stack_alignment)
    name = e.names[result] = e.fresh()
    e.entry_lines.append(
        f"  _Alignas({align}) {e.unit.in_memory(kind_of(kind.element_type))} {name}[{max(span(kind), 1)}];"
    )


PRINTERS: dict[type[Operation], Printer] = {
    memref.LoadOp: _load,
    memref.StoreOp: _store,
    memref.AllocaOp: _alloca,
    vector.LoadOp: _load,
    vector.StoreOp: _store,
    vector.MaskedLoadOp: _masked_load,
    vector.MaskedStoreOp: _masked_store,
}
