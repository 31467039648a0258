"""Fold what is known at compile time: layouts of constants, repeated operations, and what nobody uses."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import bufferization
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.ir.attributes import NODE, ints
from landbridge.ir.graph_ops import CallOp, ConcatOp, ConstantOp, IfOp, PackOp, ToVDeviceOp, UnpackOp, ViewOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import element_count, shape_of
from landbridge.passes.registry import register_pass

Array = np.ndarray[Any, Any]


def pack_array(array: Array, axes: Sequence[int], tiles: Sequence[int]) -> Array:
    """``array`` with ``axes[i]`` cut into ``tiles[i]``, tiles innermost; what a tile lacks is zero."""
    padding = [(0, 0)] * array.ndim
    for axis, tile in zip(axes, tiles, strict=True):
        padding[axis] = (0, -array.shape[axis] % tile)
    padded = np.pad(array, padding) if any(high for _, high in padding) else array
    for axis, tile in zip(axes, tiles, strict=True):
        # Cutting an axis puts the tile behind it; moving it last keeps the numbers of the outer axes.
        cut = (*padded.shape[:axis], padded.shape[axis] // tile, tile, *padded.shape[axis + 1 :])
        padded = np.moveaxis(padded.reshape(cut), axis + 1, -1)
    return np.ascontiguousarray(padded)


def unpack_array(array: Array, axes: Sequence[int], tiles: Sequence[int], shape: Sequence[int]) -> Array:
    """The inverse of ``pack_array``: the logical ``shape``, padding dropped."""
    for axis, tile in zip(reversed(axes), reversed(tiles), strict=True):
        moved = np.moveaxis(array, -1, axis + 1)
        array = moved.reshape(*moved.shape[:axis], moved.shape[axis] * tile, *moved.shape[axis + 2 :])
    return np.ascontiguousarray(array[tuple(slice(extent) for extent in shape)])


@register_pass("fold")
def fold(module: IRModule) -> None:
    """Compute layouts of constants, merge repeated operations, drop unused operations, PrimFuncs and constants."""
    block = module.main.body.block
    _fold_constants(module, block)
    _merge_repeated(block, ChainMap())
    _drop_dead(block)
    drop_unused(module)


def _evaluate(op: Operation, array: Array) -> Array | None:
    if isinstance(op, PackOp):
        return pack_array(array, ints(op.axes), ints(op.tiles))
    if isinstance(op, UnpackOp):
        return unpack_array(array, ints(op.axes), ints(op.tiles), shape_of(op.result.type))
    if isinstance(op, ViewOp):
        shape, first = shape_of(op.result.type), op.offset.value.data
        return array.reshape(-1)[first : first + element_count(shape)].reshape(shape)
    if isinstance(op, ToVDeviceOp):
        return array
    return None


def _fold_constants(module: IRModule, block: Block) -> None:
    for op in list(block.ops):
        if isinstance(op, IfOp):
            _fold_constants(module, op.then_region.block)
            _fold_constants(module, op.else_region.block)
        if isinstance(op, ConcatOp):
            sources = [_constant_of(module, v) for v in op.inputs]
            known = [s for s in sources if s is not None]
            if len(known) == len(sources):
                symbols, arrays = zip(*known, strict=True)
                joined = np.concatenate(arrays, axis=op.axis.value.data)
                _replace(op, op.result, module.add_constant(joined, symbols[0]))
        elif isinstance(op, PackOp | UnpackOp | ViewOp | ToVDeviceOp):
            source = _constant_of(module, op.source)
            folded = None if source is None else _evaluate(op, source[1])
            if source is not None and folded is not None:
                same = folded is source[1]
                symbol = source[0] if same else module.add_constant(folded, source[0])
                _replace(op, op.result, symbol)


def _constant_of(module: IRModule, value: SSAValue) -> tuple[str, Array] | None:
    if not isinstance(value.owner, ConstantOp):
        return None
    symbol = value.owner.symbol_name
    return symbol, module.constants[symbol]


def _replace(op: Operation, result: SSAValue, symbol: str) -> None:
    constant = ConstantOp(symbol, result.type)
    block = op.parent
    assert block is not None  # every operation of a walk over a block has one
    block.insert_op_before(constant, op)
    result.replace_all_uses_with(constant.result)
    Rewriter.erase_op(op)


def _merge_repeated(block: Block, seen: ChainMap[Hashable, Operation]) -> None:
    """Equal operations on equal operands are done once. Destinations are no operands here: each call has its own."""
    for op in list(block.ops):
        for region in op.regions:
            _merge_repeated(region.block, seen.new_child())
        inputs: Sequence[SSAValue]
        if isinstance(op, CallOp):
            inputs = op.inputs
        elif isinstance(op, ConstantOp | ViewOp | ConcatOp | PackOp | UnpackOp | ToVDeviceOp):
            inputs = op.operands
        else:
            continue
        facts = tuple(sorted((k, v) for k, v in op.attributes.items() if k != NODE))
        key = (op.name, tuple(inputs), facts, tuple(r.type for r in op.results))
        first = seen.setdefault(key, op)
        if first is not op:
            for mine, other in zip(op.results, first.results, strict=True):
                mine.replace_all_uses_with(other)


def _drop_dead(block: Block) -> None:
    for op in reversed(list(block.ops)):
        for region in op.regions:
            _drop_dead(region.block)
        removable = isinstance(
            op,
            CallOp | ConstantOp | ViewOp | ConcatOp | PackOp | UnpackOp | ToVDeviceOp | IfOp
            | bufferization.AllocTensorOp,
        )  # fmt: skip
        if removable and op.results and not any(r.uses for r in op.results):
            Rewriter.erase_op(op)


def drop_unused(module: IRModule) -> None:
    """Remove PrimFuncs that nothing calls and constants that nothing loads."""
    called: set[str] = set()
    loaded: set[str] = set()
    for op in module.main.walk():
        if isinstance(op, CallOp):
            called.add(op.callee_name)
        elif isinstance(op, ConstantOp):
            loaded.add(op.symbol_name)
    for name, function in module.prims().items():
        if name not in called:
            Rewriter.erase_op(function)
    _keep(module.constants, loaded.__contains__)


def _keep(table: dict[str, Array], wanted: Callable[[str], bool]) -> None:
    for symbol in [s for s in table if not wanted(s)]:
        del table[symbol]
