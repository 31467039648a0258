"""Values of a program that is cut into segments: what operations read, where it comes from, and copies of it in another
block.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import bufferization
from xdsl.ir import Block, Operation, SSAValue

from landbridge.ir.graph_ops import ConstantOp, HostCallOp, ViewOp


def is_cut(op: Operation) -> bool:
    """Returns whether a program is cut at ``op``, because it decides sizes or runs separate programs."""
    return isinstance(op, HostCallOp) and bool(op.defines or op.bodies)


def is_cut_result(value: SSAValue) -> bool:
    """Returns whether ``value`` is a result of such an operation."""
    return isinstance(value.owner, Operation) and is_cut(value.owner)


def operands_of(op: Operation) -> Iterator[SSAValue]:
    """Yields the values that ``op`` and operations inside it read from outside, without destinations."""
    inside = _created_in(op)
    for each in op.walk():
        for value in each.operands:
            if value not in inside and not isinstance(value.owner, bufferization.AllocTensorOp):
                yield value


def _created_in(op: Operation) -> set[SSAValue]:
    """Returns the results of ``op`` and of operations inside it, and the arguments of its regions."""
    created: set[SSAValue] = {result for each in op.walk() for result in each.results}
    return created | {a for each in op.walk() for region in each.regions for a in region.block.args}


def root_of(value: SSAValue) -> SSAValue:
    """Returns the value that ``value`` is a view of, or itself."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return value


def add_copy(op: Operation, block: Block, at: dict[SSAValue, SSAValue]) -> None:
    """Append a copy of ``op`` to ``block``, after copies of the operands that every segment can create itself."""
    inside = _created_in(op)
    for each in op.walk():
        for value in each.operands:
            if value not in inside:
                bring(value, block, at)
    copy = op.clone(at)
    block.add_op(copy)
    at.update(zip(op.results, copy.results, strict=True))


def bring(value: SSAValue, block: Block, at: dict[SSAValue, SSAValue]) -> None:
    """Make ``value`` available in ``block``: a view, a constant or a destination is created again."""
    if value in at or not isinstance(value.owner, bufferization.AllocTensorOp | ConstantOp | ViewOp):
        return
    chain = [value]
    while isinstance(chain[-1].owner, ViewOp) and chain[-1].owner.source not in at:
        chain.append(chain[-1].owner.source)
    for each in reversed(chain):
        if each not in at and isinstance(each.owner, Operation):
            copy = each.owner.clone(at)
            block.add_op(copy)
            at[each] = copy.results[0]
