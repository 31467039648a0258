"""Runs @main on arrays, by the interpreter of PrimFuncs, before and after buffers have offsets.

A tensor program returns its results. A program of buffers gets arrays for inputs and outputs and writes these; buffers
that share memory in the program share it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from xdsl.dialects import bufferization, func, memref
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.interpreter.prims import run_prim
from landbridge.ir.graph_ops import (
    CallOp,
    ConcatOp,
    ConstantOp,
    HostCallOp,
    IfOp,
    PackOp,
    ToVDeviceOp,
    UnpackOp,
    ViewOp,
    YieldOp,
)
from landbridge.ir.memory_ops import AllocStorageOp, AllocTensorOp, PreparedOp
from landbridge.ir.module import IRModule
from landbridge.ir.packing import pack_array, unpack_array
from landbridge.ir.plain_attributes import ints
from landbridge.ir.types import dtype_of, element_count, shape_of

Array: TypeAlias = np.ndarray[Any, Any]

#: What is in memory that no kernel has written: a kernel that reads it computes something else.
_UNWRITTEN = 99


def exact_values(name: str, ty: Attribute) -> Array:
    """A read-only array of the shape and dtype of ``ty``, seeded by ``name``: powers of two from 1/4 to 4, with signs.

    Sums and products of a few are exact in float32, in any order, and so are divisions by them. Integers are 1, 2 or 4.
    """
    dtype = numpy_dtype(dtype_of(ty))
    powers = [1, 2, 4] if dtype.kind in "iub" else [s * 2.0**e for s in (-1, 1) for e in range(-2, 3)]
    array = np.random.default_rng(crc32(name.encode())).choice(powers, shape_of(ty)).astype(dtype)
    array.flags.writeable = False
    return array


def run_main(module: IRModule) -> list[Array]:
    """What @main returns for exact values, or the contents of its arguments after it, if they are buffers."""
    block = module.main.body.block
    arrays: dict[SSAValue, Array] = {a: exact_values(f"argument {a.index}", a.type).copy() for a in block.args}
    returned = _run_block(block, module, arrays)
    return [arrays[v] for v in (returned or block.args)]


def _run_block(block: Block, module: IRModule, arrays: dict[SSAValue, Array]) -> Sequence[SSAValue]:
    """Runs the operations of ``block``, whose results ``arrays`` receives; returns the operands of the last."""
    storages: dict[SSAValue, Array] = {}
    prims = module.prims()
    for op in block.ops:
        match op:
            case func.ReturnOp() | YieldOp():
                return op.operands
            case AllocStorageOp():
                storages[op.result] = _storage(op)
            case AllocTensorOp():
                arrays[op.result] = _tensor_of(storages[op.storage], op)
            case CallOp():
                _call(op, prims[op.callee_name], arrays)
            case IfOp():
                taken = op.then_region if arrays[op.condition] else op.else_region
                yielded = _run_block(taken.block, module, arrays)
                arrays.update({result: arrays[v] for result, v in zip(op.res, yielded, strict=True)})
            case _:
                _run(op, module, arrays)
    raise AssertionError("the block does not end in a return or a yield")


def _run(op: Operation, module: IRModule, arrays: dict[SSAValue, Array]) -> None:
    match op:
        case ConstantOp():
            arrays[op.result] = module.constants[op.symbol_name]
        case bufferization.AllocTensorOp() | memref.AllocOp():
            (result,) = op.results
            arrays[result] = np.full(shape_of(result.type), _UNWRITTEN, numpy_dtype(dtype_of(result.type)))
        case ViewOp():
            shape = shape_of(op.result.type)
            flat = arrays[op.source].reshape(-1)
            assert np.shares_memory(flat, arrays[op.source]) or not flat.size
            arrays[op.result] = flat[op.first : op.first + element_count(shape)].reshape(shape)
        case HostCallOp():
            # It stands for any function of the host: both sides of a case must give it the same operands.
            (result,) = op.res
            arrays[result] = sum((arrays[v] for v in op.inputs), np.ones(shape_of(result.type))).astype(
                numpy_dtype(dtype_of(result.type))
            )
        case ToVDeviceOp():
            arrays[op.result] = arrays[op.source]
        case PreparedOp():
            pass
        case memref.CopyOp():
            arrays[op.destination][...] = arrays[op.source]
        case ConcatOp():
            arrays[op.result] = np.concatenate([arrays[v] for v in op.inputs], op.axis.value.data)
        case PackOp():
            arrays[op.result] = pack_array(arrays[op.source], ints(op.axes), ints(op.tiles))
        case UnpackOp():
            arrays[op.result] = unpack_array(arrays[op.source], ints(op.axes), ints(op.tiles), shape_of(op.result.type))
        case _:
            raise NotImplementedError(f"{op.name} of @main; add a case for it")


def _call(op: CallOp, function: func.FuncOp, arrays: dict[SSAValue, Array]) -> None:
    outputs = [arrays[v] for v in op.destinations]
    if all(isinstance(v.type, TensorType) for v in op.destinations):
        outputs = [array.copy() for array in outputs]  # a destination may serve several calls: each has its result
        arrays.update(zip(op.res, outputs, strict=True))
    run_prim(function, [*(arrays[v] for v in op.inputs), *outputs])


def _storage(op: AllocStorageOp) -> Array:
    """A flat storage as bytes, one of several dimensions as elements of its dtype."""
    if op.shape is None or op.dtype is None:
        return np.full(op.size, _UNWRITTEN, np.uint8)
    return np.full(ints(op.shape), _UNWRITTEN, numpy_dtype(op.dtype.data))


def _tensor_of(storage: Array, op: AllocTensorOp) -> Array:
    """The tensor at its offset in a storage, whose memory it has; one of several dimensions begins each of them."""
    shape, dtype = shape_of(op.result.type), numpy_dtype(dtype_of(op.result.type))
    if storage.ndim == 1:
        nbytes = element_count(shape) * dtype.itemsize
        return storage[op.first : op.first + nbytes].view(dtype).reshape(shape)
    if storage.ndim == 2:  # rows of bytes; the tensor has the same rows
        storage = storage[op.first // storage.shape[1] :].view(dtype)
    return storage[tuple(slice(e) for e in shape)]
