"""Finds loop-invariant operations."""

from __future__ import annotations

from xdsl.dialects import bufferization
from xdsl.ir import Block, Operation, SSAValue

from landbridge.ir.graph_ops import CallOp, ConcatOp, ConstantOp, ViewOp


def invariants(body: Block) -> list[Operation]:
    """Returns the loop-invariant operations of ``body`` in order, with their destinations: they can move before the
    loop.

    They depend on nothing that an iteration is given. Functions of the host are left out: each iteration calls them.
    """
    varying: set[SSAValue] = set(body.args)
    found: list[Operation] = []
    for op in body.ops:
        if isinstance(op, bufferization.AllocTensorOp):
            continue  # goes with its call
        reads = op.inputs if isinstance(op, CallOp) else op.operands
        if not isinstance(op, CallOp | ConstantOp | ViewOp | ConcatOp) or not varying.isdisjoint(reads):
            varying.update(op.results)
            continue
        destinations = op.destinations if isinstance(op, CallOp) else ()
        found += [v.owner for v in destinations if isinstance(v.owner, Operation)]
        found.append(op)
    return found
