"""Decides which inputs a kernel may write its results onto."""

from __future__ import annotations

from xdsl.dialects import func, linalg
from xdsl.ir import BlockArgument, SSAValue

from landbridge.ir.stages import Operand, PrimView, is_identity, view_generic, view_prim
from landbridge.ir.types import dtype_of, shape_of


def overwritable(function: func.FuncOp, outputs: int) -> list[tuple[int, int]]:
    """Returns pairs of (input, output) numbers such that the output may be written onto the input.

    The last ``outputs`` arguments of the PrimFunc are the outputs.
    """
    copied = copied_first(function, outputs)
    return read_where_written(function, outputs) if copied is None else [copied]


def read_where_written(function: func.FuncOp, outputs: int) -> list[tuple[int, int]]:
    """Returns the (input, output) numbers of arguments that only the last stage of a PrimFunc uses, which reads each
    element of the input where it writes that of the output.
    """
    block = function.body.block
    stage = block.last_op.prev_op if block.last_op is not None else None
    if not isinstance(stage, linalg.ops.GenericOp):
        return []
    last = view_generic(stage)
    if last.reduces:
        return []
    inputs = len(block.args) - outputs
    found = []
    for out in last.outs:
        if not _alone(out, last.extents):
            continue
        for source in last.ins:
            if not _alone(source, last.extents) or dtype_of(source.buffer.type) != dtype_of(out.buffer.type):
                continue
            i, o = _number(source.buffer), _number(out.buffer)
            if i < inputs <= o:
                found.append((i, o - inputs))
    return found


def copied_first(function: func.FuncOp, outputs: int) -> tuple[int, int] | None:
    """Returns the (input, output) numbers of a PrimFunc that first copies an input to an output and then updates parts
    of it.

    The other stages have iterations, and read and write the output alone. Returns None for any other PrimFunc.
    """
    view = view_prim(function)
    copied = _whole_copy(view) if view.is_iterated else None
    if copied is None:
        return None
    inputs = len(function.body.block.args) - outputs
    i, o = map(_number, copied)
    return (i, o - inputs) if i < inputs <= o and copied[0].has_one_use() else None


def copies_whole(function: func.FuncOp) -> bool:
    """Returns whether a PrimFunc copies its one input to its one output, and does nothing else."""
    view = view_prim(function)
    arguments = function.body.block.args
    if len(view.stages) != 1 or len(arguments) != 2 or view.has_own_order:
        return False
    return _whole_copy(view) == tuple(arguments)


def _whole_copy(view: PrimView) -> tuple[SSAValue, SSAValue] | None:
    """Returns source and target of the first stage of a PrimFunc if it copies the whole of one argument to another."""
    stage = view.stages[0] if view.stages else None
    if not isinstance(stage, linalg.ops.GenericOp):
        return None
    first = view_generic(stage)
    if len(first.ins) != 1 or len(first.outs) != 1 or first.reduces:
        return None
    source, target = first.ins[0], first.outs[0]
    stored = first.body.last_op
    if stored is None or tuple(stored.operands) != (source.scalar,) or source.buffer.type != target.buffer.type:
        return None
    whole = shape_of(source.buffer.type) == first.extents and _number(source.buffer) >= 0 <= _number(target.buffer)
    is_copy = whole and is_identity(source.map, first.extents) and is_identity(target.map, first.extents)
    return (source.buffer, target.buffer) if is_copy else None


def _alone(operand: Operand, extents: tuple[int, ...]) -> bool:
    """Returns whether only this operand uses an argument, element by element in the order of the loops."""
    return (
        isinstance(operand.buffer, BlockArgument) and operand.buffer.has_one_use() and is_identity(operand.map, extents)
    )


def _number(argument: SSAValue) -> int:
    return argument.index if isinstance(argument, BlockArgument) else -1
