"""Folds what is known at compile time: layouts of constants, repeated operations, and dead code."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import bufferization
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.ir.graph_ops import CallOp, ConcatOp, ConstantOp, IfOp, LoopOp, PackOp, ToVDeviceOp, UnpackOp, ViewOp
from landbridge.ir.module import IRModule, memory_of
from landbridge.ir.op_attributes import NODE
from landbridge.ir.packing import pack_array, unpack_array
from landbridge.ir.plain_attributes import ints
from landbridge.ir.traversal import operations, operations_of
from landbridge.ir.types import element_count, shape_of
from landbridge.passes.registry import register_pass
from landbridge.passes.rewrites import rewrite
from landbridge.sizes.size import Size

Array = np.ndarray[Any, Any]


@register_pass("fold")
def fold(module: IRModule) -> None:
    """Compute layouts of constants, merge repeated operations, drop unused operations, PrimFuncs and constants."""
    block = module.main.body.block
    _share_memory(module)
    _fold_constants(module, block, {})
    _merge_all_repeated(block)
    _drop_unused(module, block)


@rewrite("fold.pack", "a constant is packed at compile time")
def packed(op: PackOp, source: Array) -> Array:
    """Returns a constant in a blocked layout."""
    return pack_array(source, ints(op.axes), ints(op.tiles))


@rewrite("fold.unpack", "a packed constant is unpacked at compile time")
def unpacked(op: UnpackOp, source: Array) -> Array:
    """Returns a constant of a blocked layout in its plain one."""
    return unpack_array(source, ints(op.axes), ints(op.tiles), shape_of(op.result.type))


@rewrite("fold.view", "a view of a constant becomes a constant")
def viewed(op: ViewOp, source: Array) -> Array:
    """Returns a part of a constant, or a constant of another shape."""
    shape, first = shape_of(op.result.type), op.first
    return source.reshape(-1)[first : first + element_count(shape)].reshape(shape)


@rewrite("fold.to_vdevice", "a constant is loaded where it is read instead of moved there")
def carried(op: ToVDeviceOp, source: Array) -> Array:
    """Returns a constant, which is then loaded where it is read."""
    return source


@rewrite("fold.concat", "a concatenation of constants becomes a constant")
def joined(op: ConcatOp, *sources: Array) -> Array:
    """Returns the concatenation of constants."""
    return np.concatenate(sources, axis=op.axis.value.data)


#: The function that folds an operation on constants, by its type.
FOLDS: dict[type[Operation], Callable[..., Array | None]] = {
    PackOp: packed,
    UnpackOp: unpacked,
    ViewOp: viewed,
    ToVDeviceOp: carried,
    ConcatOp: joined,
}
_COMPUTE_NOTHING: tuple[type[Operation], ...] = (*FOLDS, ConstantOp)
#: Operations other than calls of which equal ones become one, by name.
_MERGED = {kind.name for kind in _COMPUTE_NOTHING}
#: Operations that go when nothing uses their results, by name.
_REMOVABLE = {*_MERGED, CallOp.name, IfOp.name, LoopOp.name, bufferization.AllocTensorOp.name}


@rewrite("fold.shared_memory", "constants that are the same memory become one")
def _share_memory(module: IRModule) -> None:
    """Merge constants that are the same memory: layers that share weights have them under several names."""
    first: dict[Hashable, str] = {}
    for op in operations_of(module.main, ConstantOp):
        array = module.constants[op.symbol_name]
        symbol = first.setdefault(memory_of(array), op.symbol_name)
        if symbol != op.symbol_name and array.nbytes:
            _replace(op, symbol)


def _fold_constants(module: IRModule, block: Block, known: dict[Hashable, str]) -> None:
    """Fold operations on constants; ``known`` memoizes results, as layers that share weights need the same ones."""
    for op in operations(block):
        for region in op.regions:
            _fold_constants(module, region.block, known)
        rule = FOLDS.get(type(op))
        if rule is None or _is_open(op):
            continue
        symbols = [v.owner.symbol_name for v in op.operands if isinstance(v.owner, ConstantOp)]
        if len(symbols) == len(op.operands):
            key = (op.name, tuple(symbols), _facts(op), op.results[0].type)
            symbol = known.get(key)
            if symbol is None:
                arrays = [module.constants[symbol] for symbol in symbols]
                folded = rule(op, *arrays)
                if folded is None:
                    continue
                symbol = known[key] = symbols[0] if folded is arrays[0] else module.add_constant(folded, symbols[0])
            _replace(op, symbol)


def _is_open(op: Operation) -> bool:
    """Returns whether the elements that ``op`` returns depend on open sizes."""
    extents = [e for result in op.results for e in shape_of(result.type)]
    return any(isinstance(e, Size) for e in (*extents, *([op.first] if isinstance(op, ViewOp) else [])))


def _replace(op: Operation, symbol: str) -> None:
    constant = ConstantOp(symbol, op.results[0].type)
    Rewriter.replace_op(op, constant)


@rewrite("fold.repeated_operation", "equal operations on equal operands become one")
def _merge_all_repeated(block: Block) -> None:
    """Merge equal operations on equal operands (common subexpressions)."""
    _merge_repeated(block, [{}], {})


def _merge_repeated(
    block: Block, seen: Sequence[dict[Hashable, list[Operation]]], merged: dict[SSAValue, SSAValue]
) -> None:
    """Merge equal operations on equal operands. Destinations do not count as operands: each call has its own.

    ``seen`` holds the operations before, of ``block`` and then of each block around it. Result types are compared, as
    their hashes take longer than all else.
    ``merged`` maps each equal value to the first of its kind. An operation's operands are replaced at once: xdsl copies
    the whole list when one operand changes.
    """
    for op in operations(block):
        if any(v in merged for v in op.operands):
            op.operands = [merged.get(v, v) for v in op.operands]
        for region in op.regions:
            _merge_repeated(region.block, [{}, *seen], merged)
        inputs: Sequence[SSAValue]
        if op.name == CallOp.name:
            assert isinstance(op, CallOp)
            inputs = op.operands[: op.input_count]
        elif op.name in _MERGED:
            inputs = op.operands
        else:
            continue
        key = (op.name, tuple(inputs), _facts(op))
        types = [r.type for r in op.results]
        equal = (each for scope in seen for each in scope.get(key, ()) if [r.type for r in each.results] == types)
        first = next(equal, None)
        if first is None:
            seen[0].setdefault(key, []).append(op)
        else:
            for mine, other in zip(op.results, first.results, strict=True):
                merged[mine] = other
                other.name_hint = other.name_hint or mine.name_hint


def _facts(op: Operation) -> tuple[tuple[str, Attribute], ...]:
    """Returns the attributes of ``op`` except those that only name its origin."""
    return tuple(sorted((k, v) for k, v in op.attributes.items() if k != NODE))


@rewrite("fold.unused", "operations, PrimFuncs and constants that nothing uses are removed")
def _drop_unused(module: IRModule, block: Block) -> None:
    """Remove operations whose results nothing uses, then PrimFuncs and constants that nothing refers to."""
    _drop_dead(block)
    module.drop_unused()


def _drop_dead(block: Block) -> None:
    for op in reversed(operations(block)):
        for region in op.regions:
            _drop_dead(region.block)
        if op.name in _REMOVABLE and op.results and all(r.first_use is None for r in op.results):
            Rewriter.erase_op(op)
