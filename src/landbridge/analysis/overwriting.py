"""Which inputs a kernel may write its results onto."""

from __future__ import annotations

from xdsl.dialects import func, linalg
from xdsl.ir import BlockArgument, SSAValue

from landbridge.ir.stages import Operand, is_identity, view_generic
from landbridge.ir.types import dtype_of


def overwritable(function: func.FuncOp, outputs: int) -> list[tuple[int, int]]:
    """(input, output) numbers of a PrimFunc, whose last ``outputs`` arguments are written, such that the output
    may be written onto the input."""
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


def _alone(operand: Operand, extents: tuple[int, ...]) -> bool:
    """Whether an argument is touched by this operand alone, element by element in the order of the loops."""
    return (
        isinstance(operand.buffer, BlockArgument) and operand.buffer.has_one_use() and is_identity(operand.map, extents)
    )


def _number(argument: SSAValue) -> int:
    return argument.index if isinstance(argument, BlockArgument) else -1
