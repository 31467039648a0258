"""Emits scalar bodies of stages, for one element or for one vector of elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects import arith, linalg, memref
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, SSAValue

from landbridge.ir.new_operation import new_operation
from landbridge.ir.plain_attributes import int_of
from landbridge.ir.prim_ops import SizeOp
from landbridge.passes.lower.code import Code, Index, Where, vector_type
from landbridge.passes.lower.nest import Stage
from landbridge.passes.lower.row_memory import PITCH, in_rows, index_strides

if TYPE_CHECKING:
    from xdsl.ir import Operation


def emit_body(
    code: Code,
    stage: Stage,
    inputs: Sequence[SSAValue | None],
    lanes: int,
    index: Callable[[int], Index],
    buffers: Mapping[SSAValue, SSAValue],
) -> list[SSAValue]:
    """Returns the values that ``stage`` yields for ``inputs``, the values of its block arguments (None for unused
    ones).

    A value stays scalar until it is combined with a vector. ``index(d)`` returns the loop index for ``linalg.index d``.
    """
    pairs = zip(stage.body.args, inputs, strict=False)
    env: dict[SSAValue, SSAValue] = {argument: value for argument, value in pairs if value is not None}
    for op in stage.body.ops:
        kind = type(op)
        if kind is linalg.ops.YieldOp:
            return [env[v] for v in op.operands]
        if kind is memref.StoreOp:  # isinstance takes ten times as long when the answer is no
            op = cast(memref.StoreOp, op)
            code.store(env[op.value], buffers[op.memref], location_of(code, op, [env[i] for i in op.indices]))
            continue
        env[op.results[0]] = _emit(code, op, env, lanes, index, buffers)
    return []


def _emit(
    code: Code,
    op: Operation,
    env: Mapping[SSAValue, SSAValue],
    lanes: int,
    index: Callable[[int], Index],
    buffers: Mapping[SSAValue, SSAValue],
) -> SSAValue:
    kind = type(op)
    if kind is linalg.ops.IndexOp:
        return code.value(index(cast(linalg.ops.IndexOp, op).dim.value.data))
    if kind is memref.LoadOp:
        op = cast(memref.LoadOp, op)
        return code.load(buffers[op.memref], location_of(code, op, [env[i] for i in op.indices]), op.results[0].type)
    return copied(code, op, [env[v] for v in op.operands], lanes)


def copied(code: Code, op: Operation, operands: Sequence[SSAValue], lanes: int) -> SSAValue:
    """Returns the result of ``op``, an operation on values alone, for other operands: a vector of ``lanes`` if any
    operand is one.
    """
    result = op.results[0].type
    if not operands:
        if isinstance(op, arith.ConstantOp):
            return code.constant(op.value, result)
        if isinstance(op, SizeOp):
            return code.number(int_of(op.size), result)
    are_vectors = [type(v.type) is VectorType for v in operands]
    if True in are_vectors:
        pairs = zip(operands, are_vectors, strict=True)
        operands = [v if is_vector else code.broadcast(v, lanes) for v, is_vector in pairs]
        result = vector_type(result, lanes)
    return code.add_op(new_operation(type(op), operands, (result,), op.properties, op.attributes))


def value_of(code: Code, wanted: SSAValue, given: Mapping[SSAValue, SSAValue], lanes: int) -> SSAValue:
    """Returns ``wanted``, a value of a body without memory accesses, computed from the values ``given``."""
    if wanted in given:
        return given[wanted]
    op = wanted.owner
    assert not isinstance(op, Block), "an argument that is not given"
    return copied(code, op, [value_of(code, v, given, lanes) for v in op.operands], lanes)


def location_of(code: Code, op: memref.LoadOp | memref.StoreOp, indices: Sequence[Index]) -> Where:
    """Returns the location of the element that ``op`` loads or stores at ``indices``."""
    row: Index = 0
    column: Index = 0
    for i, stride in zip(indices, index_strides(op.memref.type), strict=True):
        if isinstance(stride, int) and stride >= PITCH:  # memory in rows has no open extents
            row = code.add(row, code.mul(i, stride // PITCH))
        else:
            column = code.add(column, code.mul(i, stride))
    return (row, column) if in_rows(op.memref.type) else column
