"""Recognizes running folds: PrimFuncs in which each iteration updates the state of every element.

Such a PrimFunc is one nest: the iterations are its only reduction loop, and the elements are tasks. An example is the
prefix sum along an axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith, linalg, memref
from xdsl.ir import Operation, SSAValue

from landbridge.ir.prim_ops import StepsOp
from landbridge.ir.stages import Generic, PrimView
from landbridge.passes.lower.access import ElementAccess, Linear, rename_access
from landbridge.passes.lower.combiners import folds
from landbridge.passes.lower.nest import LoopDim, Nest, Scan, Stage, build_nests
from landbridge.sizes.size import at_least


def scan_nest(prim: PrimView) -> Nest | None:
    """Returns the nest of a PrimFunc that is one running fold; None for all others.

    A running fold sets its state to a constant and then iterates one stage. Each element of this stage reads and writes
    its own state, and writes a result of its own in each iteration.
    """
    first, iterations, last = _sections(prim)
    if iterations is None or first is None or last:
        return None
    steps, view = iterations
    nests = build_nests(view)
    if len(nests) != 1 or len(nests[0].stages) != 1 or nests[0].bounds:
        return None
    nest, (stage,) = nests[0], nests[0].stages
    outside: dict[SSAValue, SSAValue] = dict(zip(steps.body.block.args, steps.buffers, strict=True))
    accesses = [*(r for r in stage.reads if isinstance(r, ElementAccess)), *stage.writes]
    if stage.reduces or any(a.guards or a.index.rest for a in accesses) or not _computes(stage):
        return None
    if len(stage.writes) != 2 or outside[stage.writes[1].buffer] is not first.outs[0].buffer:
        return None
    result, state = stage.writes
    state_reads = [i for i, r in enumerate(stage.reads) if isinstance(r, ElementAccess) and r.buffer is state.buffer]
    others = {r.buffer for r in stage.reads if isinstance(r, ElementAccess)} - {state.buffer}
    if len(state_reads) != 1 or result.buffer in {state.buffer, *others} or state.index.uses(0):
        return None
    read = stage.reads[state_reads[0]]
    assert isinstance(read, ElementAccess)
    value = first.body.last_op.operands[0].owner if first.body.last_op else None
    if read.index != state.index or not isinstance(value, arith.ConstantOp):
        return None
    back = not at_least(result.index.coeff(0), 0)
    at = _reversed(nest.dims) if back else {d: Linear(0, {d: 1}) for d in range(len(nest.dims))}

    def placed(a: ElementAccess) -> ElementAccess:
        return rename_access(replace(a, buffer=outside[a.buffer]), at)

    main = Stage(
        stage.body,
        tuple(placed(r) if isinstance(r, ElementAccess) and r is not read else None for r in stage.reads),
        tuple(placed(w) for w in stage.writes),
        (True, True),
        (None, value.value),
        at,
        True,
        Scan(state_reads[0], back),
    )
    return Nest([LoopDim(d.extent, not i) for i, d in enumerate(nest.dims)], [main])


def _sections(prim: PrimView) -> tuple[Generic | None, tuple[StepsOp, PrimView] | None, bool]:
    """Returns the only stage before the iterations, the iterations, and whether the PrimFunc has other stages."""
    before: list[Generic] = []
    iterations: list[tuple[StepsOp, PrimView]] = []
    more = False
    for steps, view in prim.sections():
        if steps is not None:
            iterations.append((steps, view))
        elif iterations:
            more = more or bool(view.stages)
        else:
            before = list(view.generics())
            more = more or len(view.stages) != len(before)
    single = before[0] if len(before) == 1 and before[0].elementwise else None
    return single, iterations[0] if len(iterations) == 1 else None, more


def _reversed(dims: Sequence[LoopDim]) -> dict[int, Linear]:
    """Returns indices of loops, with the order of the first loop reversed."""
    last = dims[0].extent - 1
    return {d: Linear(0, {d: 1}) if d else Linear(last, {0: -1}) for d in range(len(dims))}


def _computes(stage: Stage) -> bool:
    """Returns whether a body consists of operations on its arguments and constants alone."""
    return not any(isinstance(op, linalg.ops.IndexOp | memref.LoadOp) for op in stage.body.ops)


def fold_of(stage: Stage) -> Operation | None:
    """Returns the operation that computes the next state of ``stage``, a running fold; None if it must run in order.

    It may be reordered if it is associative and the result is computed from one of the two states alone.
    """
    assert stage.scan is not None and stage.body.last_op is not None
    state = stage.body.args[stage.scan.state]
    shown, following = stage.body.last_op.operands
    operation = following.owner
    if not isinstance(operation, Operation) or not folds(operation) or operation.operands[0] is not state:
        return None
    if _built_from(operation.operands[1], state):
        return None
    while isinstance(shown.owner, Operation) and shown is not following and len(shown.owner.operands) == 1:
        shown = shown.owner.operands[0]
    return operation if shown is state or shown is following else None


def _built_from(value: SSAValue, source: SSAValue) -> bool:
    if value is source:
        return True
    return isinstance(value.owner, Operation) and any(_built_from(v, source) for v in value.owner.operands)
