"""Prepare: moves work that depends on parameters alone out of the runs; it is done when they change.

A parameter is a weight that stays replaceable, so operations on it are not folded: operations of @main pack it, cast it
or copy it to a device. Those whose every source is a parameter, a constant, or a result of such operations come first,
and ``lb.prepared`` after them; the buffers that it names retain their values from run to run. Operations that were
fused into a later kernel stay there. Those of an open size, and of parameters that are to stay unpacked, are done in
each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import memref
from xdsl.ir import BlockArgument, Operation, SSAValue

from landbridge.analysis.lifetimes import root
from landbridge.ir.graph_ops import CallOp, ConstantOp, HostCallOp, ToVDeviceOp, ViewOp
from landbridge.ir.memory_ops import PreparedOp
from landbridge.ir.module import IRModule, packed_parameters
from landbridge.ir.traversal import operations
from landbridge.ir.types import nbytes_of
from landbridge.passes.registry import register_pass
from landbridge.records import record
from landbridge.sizes.size import Size

#: Operations that only locate bytes.
_PLACES = (memref.AllocOp, ConstantOp, ViewOp, ToVDeviceOp)


@record(frozen=True)
class _Step:
    """An operation of @main, and the buffers that it reads and writes."""

    op: Operation
    reads: frozenset[SSAValue]
    writes: frozenset[SSAValue]


@register_pass("prepare")
def prepare(module: IRModule) -> None:
    """Move what depends on parameters alone to the front of @main, to be computed when they change."""
    block = module.main.body.block
    weights = packed_parameters(module)
    if not weights:
        return
    found = [_step(op) for op in block.ops if not isinstance(op, _PLACES)]
    prepared = _prepared([step for step in found if step.reads or step.writes], weights)
    if not prepared:
        return
    first = {step.op for step in prepared}
    prepared_buffers = {buffer for step in prepared for buffer in step.writes}
    later = frozenset[SSAValue]().union(*(step.reads for step in found if step.op not in first))
    ops = operations(block)
    for op in ops:
        block.detach_op(op)
    block.add_ops(op for op in ops if isinstance(op, _PLACES))
    block.add_ops(op for op in ops if op in first)
    block.add_op(PreparedOp([buffer for buffer in _in_order(ops) if buffer in prepared_buffers & later]))
    block.add_ops(op for op in ops if not isinstance(op, _PLACES) and op not in first)


def _prepared(steps: Sequence[_Step], weights: frozenset[SSAValue]) -> list[_Step]:
    """Returns those of ``steps`` that read nothing but parameters, constants and each other's results."""
    chosen = [
        step for step in steps if isinstance(step.op, CallOp | memref.CopyOp) and not any(map(_is_open, step.writes))
    ]
    while True:
        left = {step.op for step in chosen}
        others = frozenset[SSAValue]().union(*(step.writes for step in steps if step.op not in left))
        results = set[SSAValue]().union(*(step.writes for step in chosen)) - others
        known, remaining = set(weights), []
        for step in chosen:
            fits = all(v in weights or isinstance(v.owner, ConstantOp) or v in results for v in step.reads)
            fits = fits and step.writes <= results and not any(isinstance(v, BlockArgument) for v in step.writes)
            # Operations on constants alone need no preparation: they do not change.
            if fits and not known.isdisjoint(step.reads):
                known |= step.writes
                remaining.append(step)
            else:
                results -= step.writes  # so that dependent steps are removed in the same round
        if len(remaining) == len(chosen):
            return remaining
        chosen = remaining


def _is_open(buffer: SSAValue) -> bool:
    """Returns whether ``buffer`` has another size for other inputs: its contents are for one size only."""
    return isinstance(nbytes_of(buffer.type), Size)


def _step(op: Operation) -> _Step:
    if isinstance(op, CallOp | HostCallOp):
        reads, writes = list(op.inputs), list(op.destinations)
    elif isinstance(op, memref.CopyOp):
        reads, writes = [op.source], [op.destination]
    else:
        reads = writes = list(_touched(op))
    return _Step(op, frozenset(map(root, reads)), frozenset(map(root, writes)))


def _touched(op: Operation) -> Iterator[SSAValue]:
    """Yields every memref that ``op`` or an operation inside it uses."""
    for inner in op.walk():
        yield from inner.operands


def _in_order(ops: Sequence[Operation]) -> Iterator[SSAValue]:
    for op in ops:
        if isinstance(op, memref.AllocOp):
            yield op.memref
