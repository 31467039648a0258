"""Lifetimes: the steps during which the bytes of each buffer of a memory-level @main are in use.

Steps number the operations that use memory, in the order of the text, both branches of an ``lb.if`` one after the
other. A buffer is needed exactly from its first step to its last; what only one branch needs may share bytes with what
only the other needs. An ``lb.loop`` is a step before its body and one after it: temporaries of an iteration live inside
of the body, and what was made before and is used there lives until the loop has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from xdsl.dialects import memref
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from landbridge.ir.graph_ops import CallOp, HostCallOp, IfOp, LoopOp, ToVDeviceOp, ViewOp
from landbridge.ir.memory_ops import PreparedOp
from landbridge.ir.traversal import operations
from landbridge.records import record


@record(frozen=True)
class Lifetime:
    """The first and the last step, both included, at which a buffer is used."""

    first: int
    last: int


def beginning(value: SSAValue) -> tuple[SSAValue, int]:
    """Returns the value that ``value`` is a view of, and the index of the element that it begins with."""
    first = 0
    while isinstance(value.owner, ViewOp):
        first += value.owner.first
        value = value.owner.source
    return value, first


def root(value: SSAValue) -> SSAValue:
    """Returns the buffer that ``value`` is a view of, or a loop iteration's slice of."""
    while True:
        if isinstance(value.owner, ViewOp | ToVDeviceOp):  # at this level all remaining crossings are views
            value = value.owner.source
        elif isinstance(value, BlockArgument) and isinstance(loop := value.block.parent_op(), LoopOp):
            value = loop.sliced[value.index]
        else:
            return value


#: Operations that use memory and have no blocks of their own, by name.
_USERS = {op.name for op in (CallOp, HostCallOp, memref.CopyOp, PreparedOp)}


def steps(block: Block) -> Iterator[tuple[Operation, tuple[SSAValue, ...]]]:
    """Yields the operations that use memory, each with the values it uses."""
    for op in operations(block):
        if op.name in _USERS:
            yield op, tuple(op.operands)
        elif isinstance(op, IfOp):
            yield op, (op.condition,)
            yield from steps(op.then_region.block)
            yield from steps(op.else_region.block)
        elif isinstance(op, LoopOp):
            yield op, tuple(op.operands)
            yield from steps(op.body.block)
            yield op, tuple(op.operands)


def lifetimes(block: Block) -> dict[SSAValue, Lifetime]:
    """Returns the lifetime of every buffer that is used, by its root value; prepared buffers live past the end."""
    found: dict[SSAValue, Lifetime] = {}
    end, prepared = 0, set[SSAValue]()
    began: dict[Operation, int] = {}
    for step, (op, touched) in enumerate(steps(block)):
        end = step + 1
        if isinstance(op, LoopOp) and began.setdefault(op, step) < step:
            for buffer, life in found.items():
                if life.first < began[op] < life.last:
                    found[buffer] = replace(life, last=step)
        for value in touched:
            buffer = root(value)
            known = found.get(buffer)
            found[buffer] = Lifetime(step if known is None else known.first, step)
        if isinstance(op, PreparedOp):
            prepared.update(map(root, touched))
    return found | {buffer: replace(found[buffer], last=end) for buffer in prepared}
