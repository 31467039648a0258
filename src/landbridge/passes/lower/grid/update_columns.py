"""Schedule of updates at computed positions: a work-item for each column, which applies its updates in order.

A kernel that puts rows into a tensor (ScatterND, TensorScatter) iterates over the rows, as a later one may hit what an
earlier one wrote. Its other loops say themselves where they write: the column of an element is its index there. So no
work-item reads what another writes, and columns need no order, nor a barrier.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.dialects import linalg, memref
from xdsl.ir import SSAValue

from landbridge.ir.prim_ops import StepsOp
from landbridge.ir.stages import Generic, PrimView, is_identity, view_generic
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.grid.cost import WORKGROUPS
from landbridge.passes.lower.grid.launch import Launcher, WorkItem
from landbridge.passes.lower.nest import build_nests
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.serial import ONE, serial
from landbridge.passes.lower.simplify import simplify
from landbridge.sizes.size import Size


def column_launch(launcher: Launcher, prim: PrimView, buffers: Mapping[SSAValue, SSAValue]) -> bool:
    """Emit the launch of ``prim`` with a work-item for each column; returns False where its columns are not
    independent.
    """
    found = _updates(prim)
    if found is None:
        return False
    steps, view = found
    nests = build_nests(view)
    if len(nests) != 1 or nests[0].is_empty:
        return False
    nest = simplify(nests[0], keep=1)
    sched = serial(nest, (0,))
    extents = [nest.dims[d].extent for d in sched.outer]
    if any(isinstance(extent, Size) for extent in extents):
        return False  # how many columns there are is not known
    count = math.prod(extents)
    size = min(count, WORKGROUPS.default_size, launcher.limits.workgroup_size)
    memory = dict(buffers) | dict(zip(steps.body.block.args, [buffers[b] for b in steps.buffers], strict=True))

    def body(code: Code, item: WorkItem) -> None:
        t = code.add(code.mul(item.group, size), item.thread)

        def column() -> None:
            at = dict(zip(sched.outer, code.unflatten(t, extents), strict=True))

            def update(i: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
                NestEmitter(code, nest, sched, memory, {0: i, **at}).tile(ONE)
                return []

            code.loop(0, steps.iterations, 1, [], update)

        if count % size:
            code.when(code.inside(t, count), column)
        else:
            column()

    launcher.launch(-(-count // size), size, body)
    return True


def _updates(prim: PrimView) -> tuple[StepsOp, PrimView] | None:
    """Returns the only stage of ``prim`` where that iterates one elementwise stage with independent columns."""
    if len(prim.stages) != 1:
        return None
    found = [(steps, view) for steps, view in prim.sections() if steps is not None]
    steps, view = found[0]
    stage = view.stages[0] if len(view.stages) == 1 else None
    if not isinstance(stage, linalg.ops.GenericOp) or len(set(steps.buffers)) < len(steps.buffers):
        return None
    generic = view_generic(stage)
    return (steps, view) if generic.elementwise and has_own_columns(generic) else None


def has_own_columns(generic: Generic) -> bool:
    """Returns whether iterations of the loops of ``generic`` other than the first use different elements of all that it
    writes.

    They do where each such loop is by itself an index of every access to a buffer that the body stores to.
    """
    accesses = [op for op in generic.body.walk() if isinstance(op, memref.StoreOp | memref.LoadOp)]
    stored = {op.memref for op in accesses if isinstance(op, memref.StoreOp)}
    mapped = {each.buffer for each in (*generic.ins, *generic.outs)}
    if stored & mapped or {each.buffer for each in generic.ins} & {each.buffer for each in generic.outs}:
        return False
    if any(isinstance(op, memref.LoadOp) and op.memref in mapped - {e.buffer for e in generic.ins} for op in accesses):
        return False
    if not all(is_identity(each.map, generic.extents) for each in generic.outs):
        return False
    for buffer in stored:
        indices = [_loops(op) for op in accesses if op.memref is buffer]
        for loop, extent in enumerate(generic.extents[1:], 1):
            axes = set.intersection(*({axis for axis, at in enumerate(each) if at == loop} for each in indices))
            if extent != 1 and not axes:
                return False
    return True


def _loops(op: memref.StoreOp | memref.LoadOp) -> list[int | None]:
    """Returns the loop that each index of ``op`` is; None for any other index."""
    owners = [value.owner for value in op.indices]
    return [each.dim.value.data if isinstance(each, linalg.ops.IndexOp) else None for each in owners]
