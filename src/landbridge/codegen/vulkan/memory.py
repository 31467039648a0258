"""SPIR-V of loads, stores and memory: logical addressing, one index into one array of elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.grid import is_local
from landbridge.codegen.layout import span, strides_and_offset
from landbridge.codegen.vulkan import images
from landbridge.codegen.vulkan.emitter import MemoryVariable, Printer, SpirvEmitter, bits_of, retained
from landbridge.errors import CodegenError
from landbridge.executable.spirv import Op, StorageClass


def stored_element(e: SpirvEmitter, ref: SSAValue) -> str:
    """Returns the element type that memory of ``ref`` holds: a boolean is a byte."""
    ty = ref.type
    assert isinstance(ty, MemRefType)
    element = retained(e.element_of(ty.element_type))
    return "i8" if element == "i1" else element


def _pointer(e: SpirvEmitter, ref: SSAValue, indices: Sequence[SSAValue]) -> tuple[int, str]:
    """Returns a pointer to an element, and its type."""
    memory = e.memory[ref]
    ty = ref.type
    assert isinstance(ty, MemRefType)
    strides, offset = strides_and_offset(ty)
    total = e.constant(offset, e.index) if offset else None
    if memory.start:
        total = memory.start if total is None else e.emit(Op.IAdd, e.index, memory.start, total)
    terms = [(v, n * stride) for i, stride in zip(indices, strides, strict=True) for v, n in _terms(i)]
    # Subtractions come last: no intermediate result is below 0, so that no unsigned sum wraps. Drivers may widen the
    # parts of an address one by one.
    for value, factor in sorted(terms, key=lambda term: term[1] < 0):
        count = abs(factor)
        if value is None:
            term = e.constant(count, e.index)
        else:
            term = e.ids[value] if count == 1 else e.emit(Op.IMul, e.index, e.ids[value], e.constant(count, e.index))
        if total is None:
            total = term if factor > 0 else e.emit(Op.ISub, e.index, e.constant(0, e.index), term)
        else:
            total = e.emit(Op.IAdd if factor > 0 else Op.ISub, e.index, total, term)
    if total is None:
        total = e.constant(0, e.index)
    path = [e.constant(0, "i32"), total] if memory.storage == StorageClass.StorageBuffer else [total]
    kind = e.module.pointer(memory.storage, e.module.type_of(memory.element))
    found = e.module.fresh()
    e.statement(Op.InBoundsAccessChain, kind, found, memory.variable, *path)
    return found, memory.element


def _terms(index: SSAValue) -> list[tuple[SSAValue | None, int]]:
    """Splits ``index`` into a sum of values times numbers and numbers alone (None), where a value counts downwards;
    otherwise returns ``index`` itself, as its parts are computed once.
    """
    found = list(_summands(index, 1))
    return found if any(factor < 0 and value is not None for value, factor in found) else [(index, 1)]


def _summands(value: SSAValue, factor: int) -> Iterator[tuple[SSAValue | None, int]]:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        if number := factor * owner.value.value.data:
            yield None, number
    elif isinstance(owner, arith.AddiOp):
        for operand in owner.operands:
            yield from _summands(operand, factor)
    elif isinstance(owner, arith.MuliOp) and isinstance(found := owner.rhs.owner, arith.ConstantOp):
        assert isinstance(found.value, IntegerAttr)
        yield from _summands(owner.lhs, factor * found.value.value.data)
    else:
        yield value, factor


def _load_word(e: SpirvEmitter, op: Operation) -> None:
    """Loads a Size as an index: all of its word, or the lower half, which comes first."""
    memory, at = e.memory[op.operands[0]], op.operands[1].owner
    assert isinstance(at, arith.ConstantOp) and isinstance(at.value, IntegerAttr)
    halves = 64 // bits_of(memory.element)
    number = e.constant(at.value.value.data * halves, e.index)
    if memory.start:
        number = e.emit(Op.IAdd, e.index, memory.start, number)
    kind = e.module.pointer(memory.storage, e.module.type_of(memory.element))
    pointer = e.module.fresh()
    e.statement(Op.InBoundsAccessChain, kind, pointer, memory.variable, e.constant(0, "i32"), number)
    e.set(op.results[0], e.emit(Op.Load, memory.element, pointer))


def _load(e: SpirvEmitter, op: Operation) -> None:
    if op.operands[0] in e.memory and e.memory[op.operands[0]].is_words:
        _load_word(e, op)
        return
    if op.operands[0] in e.images:
        images.load_lane(e, op)
        return
    pointer, element = _pointer(e, op.operands[0], op.operands[1:])
    value = e.emit(Op.Load, element, pointer)
    if e.element(op.results[0]) == "i1":
        value = e.emit(Op.INotEqual, "i1", value, e.constant(0, element))
    e.set(op.results[0], value)


def _store(e: SpirvEmitter, op: Operation) -> None:
    value, ref, *indices = op.operands
    if ref in e.images:
        images.store(e, op)
        return
    pointer, element = _pointer(e, ref, indices)
    found = e.ids[value]
    if e.element(value) == "i1":
        found = e.emit(Op.Select, element, found, e.constant(1, element), e.constant(0, element))
    e.statement(Op.Store, pointer, found)


def _memory(e: SpirvEmitter, op: Operation) -> None:
    """Makes a MemoryVariable of a workgroup, or of an invocation."""
    result = op.results[0]
    ty = result.type
    assert isinstance(ty, MemRefType)
    if isinstance(op, memref.AllocOp) and not is_local(ty):
        raise CodegenError(f'memref.alloc of {ty} inside a launch; legal there: the scope "local"')
    storage = StorageClass.Workgroup if is_local(ty) else StorageClass.Function
    element = stored_element(e, result)
    pointer, variable = e.module.array_variable(element, max(span(ty), 1), storage)
    if storage == StorageClass.Function:
        e.variables += [4 << 16 | Op.Variable, pointer, variable, storage]
    else:
        e.interface[variable] = None
    e.memory[result] = MemoryVariable(variable, element, storage)


PRINTERS: dict[type[Operation], Printer] = {
    memref.LoadOp: _load,
    memref.StoreOp: _store,
    memref.AllocOp: _memory,
    memref.AllocaOp: _memory,
}
