"""Plans what to rewrite in a call: which runs of steps become one, and which weights take their scale."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr

from landbridge.analysis.accesses import reads_of
from landbridge.ir.graph_ops import CallOp, ConstantOp
from landbridge.ir.stages import Generic, Operand, is_identity, view_generic
from landbridge.ir.types import shape_of
from landbridge.passes.fold_scale.steps import Aligned, Steps, multiplies, steps_of
from landbridge.passes.fold_scale.weights import factors_before, scaled
from landbridge.passes.fuse.graph import Graph, inputs_of
from landbridge.passes.rewrites import rewrite
from landbridge.records import record

Array = np.ndarray[Any, Any]


@record(frozen=True, eq=False)
class ScalePlan:
    """Steps to merge, and the input of the call that takes their scale, with its new value, if one does."""

    stage: Generic
    steps: Steps
    scale: Aligned
    argument: int = -1
    weights: Array | None = None


#: Scaled weights by the argument that they replace and the scale.
Products: TypeAlias = dict[tuple[int, tuple[int, ...], bytes], Array | None]


def plans_of(graph: Graph, call: CallOp, products: Products) -> list[ScalePlan]:
    """Returns the plans for the PrimFunc of ``call``; ``products`` holds weights that were scaled for it before."""
    block = graph.function(call).body.block
    arguments: list[SSAValue] = list(block.args)
    inputs = inputs_of(call)
    plans = []
    taken: set[int] = set()
    for op in block.ops:
        if not isinstance(op, linalg.ops.GenericOp):
            continue
        stage = view_generic(op)
        if stage.reduces:
            continue
        known: dict[SSAValue, Aligned] = {}
        for o in stage.ins:
            array = _constant(graph, inputs, o.buffer)
            aligned = None if array is None else _aligned(array, o, stage)
            if aligned is not None:
                known[o.scalar] = aligned
        for inner in stage.body.ops:
            if isinstance(inner, arith.ConstantOp) and isinstance(inner.value, FloatAttr):
                known[inner.result] = np.full((1,) * len(stage.extents), inner.value.value.data)
        for steps in steps_of(stage, known.get):
            plan = _scaled_weights(graph, inputs, arguments, stage, steps, products) or _one_step(stage, steps)
            if plan is None or plan.argument in taken:
                continue
            if multiplies(plan.scale) + (steps.shift is not None) < steps.cost:
                plans.append(plan)
                taken |= {plan.argument} - {-1}
    return plans


@rewrite("fold_scale.steps", "arithmetic with constants becomes one multiplication and one addition")
def _one_step(stage: Generic, steps: Steps) -> ScalePlan | None:
    """Returns the plan for ``steps`` as one multiplication and one addition; None for a division that is not exact as
    a multiplication."""
    return None if steps.divides else ScalePlan(stage, steps, steps.scale)


@rewrite("fold_scale.weights", "a scale of a sum of products moves into its constant weights")
def _scaled_weights(
    graph: Graph,
    inputs: tuple[SSAValue, ...],
    arguments: list[SSAValue],
    stage: Generic,
    steps: Steps,
    products: Products,
) -> ScalePlan | None:
    """Returns the plan for ``steps`` with their scale in constant weights; None unless a sum of products directly
    precedes them."""
    source = next((o for o in stage.ins if o.scalar is steps.root), None)
    if multiplies(steps.scale) and source is not None and steps.root.has_one_use():
        whole = shape_of(source.buffer.type) == stage.extents and is_identity(source.map, stage.extents)
        if whole and len(reads_of(source.buffer) or ()) == 1:
            for factor in factors_before(source.buffer, arguments):
                array = _constant(graph, inputs, factor.operand.buffer)
                if array is None or not factor.operand.buffer.has_one_use():
                    continue
                key = (factor.argument, steps.scale.shape, steps.scale.tobytes())
                if key not in products:
                    products[key] = scaled(array, factor, steps.scale)
                product = products[key]
                if product is not None:
                    return ScalePlan(stage, steps, np.ones_like(steps.scale), factor.argument, product)
    return None


def _constant(graph: Graph, inputs: tuple[SSAValue, ...], buffer: SSAValue) -> Array | None:
    """Returns the float32 array that an argument is bound to; None if it is no such constant."""
    position = buffer.index if isinstance(buffer, BlockArgument) else len(inputs)
    owner = inputs[position].owner if position < len(inputs) else None
    if not isinstance(owner, ConstantOp):
        return None
    array = graph.module.constants.get(owner.symbol_name)
    return array if array is not None and array.dtype == np.float32 else None


def _aligned(array: Array, operand: Operand, stage: Generic) -> Aligned | None:
    """Returns ``array`` with one axis per loop; None if its access is more than a broadcast."""
    loops: list[int] = []
    for e, extent in zip(operand.map.results, array.shape, strict=True):
        if extent == 1:
            continue
        if not isinstance(e, AffineDimExpr) or stage.extents[e.position] != extent or e.position in loops:
            return None
        loops.append(e.position)
    compact = array.reshape([e for e in array.shape if e != 1]).astype(np.float64)
    ordered = compact.transpose([loops.index(d) for d in sorted(loops)])
    return ordered.reshape([e if d in loops else 1 for d, e in enumerate(stage.extents)])
