"""Values of a program that is cut: what operations read, where it comes from, and copies of them in another block."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import bufferization
from xdsl.ir import Block, Operation, SSAValue

from landbridge.ir.graph_ops import ConstantOp, HostCallOp, ViewOp


def is_cut(op: Operation) -> bool:
    """Whether a program is cut at ``op``: its results, or what is read of them, say sizes, or it runs programs."""
    return isinstance(op, HostCallOp) and bool(op.defines or op.bodies)


def is_cut_result(value: SSAValue) -> bool:
    """Whether ``value`` is there when such an operation has run."""
    return isinstance(value.owner, Operation) and is_cut(value.owner)


def operands_of(op: Operation) -> Iterator[SSAValue]:
    """What ``op`` and operations inside of it read from outside, destinations left out."""
    inside = _created_in(op)
    for each in op.walk():
        for value in each.operands:
            if value not in inside and not isinstance(value.owner, bufferization.AllocTensorOp):
                yield value


def _created_in(op: Operation) -> set[SSAValue]:
    """Results of ``op`` and of operations inside of it, and the arguments of its regions."""
    created: set[SSAValue] = {result for each in op.walk() for result in each.results}
    return created | {a for each in op.walk() for region in each.regions for a in region.block.args}


def root_of(value: SSAValue) -> SSAValue:
    """What ``value`` is a view of, itself where it is none."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return value


def add_copy(op: Operation, block: Block, at: dict[SSAValue, SSAValue]) -> None:
    """A copy of ``op`` at the end of ``block``, behind what it needs that is everywhere."""
    inside = _created_in(op)
    for each in op.walk():
        for value in each.operands:
            if value not in inside:
                bring(value, block, at)
    copy = op.clone(at)
    block.add_op(copy)
    at.update(zip(op.results, copy.results, strict=True))


def bring(value: SSAValue, block: Block, at: dict[SSAValue, SSAValue]) -> None:
    """Have ``value`` in ``block``: a view, a constant or a destination is made again."""
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
