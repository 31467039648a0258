"""Computes values of a graph that depend on constants alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import bufferization
from xdsl.ir import Block, SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.errors import UnsupportedOperatorError
from landbridge.interpreter.accesses import Array, number
from landbridge.interpreter.prims import run_prim
from landbridge.ir.graph_ops import CallOp, ConcatOp, ConstantOp, PackOp, UnpackOp, ViewOp
from landbridge.ir.module import IRModule
from landbridge.ir.packing import pack_array, unpack_array
from landbridge.ir.plain_attributes import ints
from landbridge.ir.types import dtype_of, element_count, shape_of


def computed(module: IRModule, block: Block, values: Sequence[SSAValue], most_bytes: float) -> list[Array]:
    """Returns the arrays of ``values`` of ``block``, whose operations read constants of ``module`` alone.

    Raises UnsupportedOperatorError, and computes nothing, if one tensor would have more than ``most_bytes``, or if an
    operation is not computed at compile time (see ``run_prim``).
    """
    shapes = {}
    for op in block.ops:
        for result in op.results:
            shape = tuple(number(extent) for extent in shape_of(result.type))
            dtype = numpy_dtype(dtype_of(result.type))
            if element_count(shape) * dtype.itemsize > most_bytes:
                raise UnsupportedOperatorError(f"a constant of {element_count(shape) * dtype.itemsize} bytes")
            shapes[result] = shape, dtype
    prims = module.prims()
    arrays: dict[SSAValue, Array] = {}
    for op in block.ops:
        match op:
            case ConstantOp():
                arrays[op.result] = module.constants[op.symbol_name]
            case bufferization.AllocTensorOp():
                pass
            case CallOp():
                outputs = [np.zeros(*shapes[result]) for result in op.res]
                run_prim(prims[op.callee_name], [*(arrays[v] for v in op.inputs), *outputs])
                arrays.update(zip(op.res, outputs, strict=True))
            case ViewOp():
                shape, first = shapes[op.result][0], number(op.first)
                flat = np.ascontiguousarray(arrays[op.source]).reshape(-1)
                arrays[op.result] = flat[first : first + element_count(shape)].reshape(shape)
            case ConcatOp():
                arrays[op.result] = np.concatenate([arrays[v] for v in op.inputs], op.axis.value.data)
            case PackOp():
                arrays[op.result] = pack_array(arrays[op.source], ints(op.axes), ints(op.tiles))
            case UnpackOp():
                arrays[op.result] = unpack_array(arrays[op.source], ints(op.axes), ints(op.tiles), shapes[op.result][0])
            case _:
                raise UnsupportedOperatorError(f"{op.name} is not an operation that is computed at compile time")
    return [arrays[v] for v in values]
