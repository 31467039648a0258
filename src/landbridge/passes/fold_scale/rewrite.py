"""Rewriting the PrimFunc of a call, and the constants it is given, so that runs of steps are one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects import arith, linalg, memref
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from landbridge.analysis.accesses import is_copy, reads_of
from landbridge.ir.graph_builder import broadcast_map
from landbridge.ir.graph_ops import CallOp, ConstantOp
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.stages import Generic, Operand, is_identity, view_generic
from landbridge.ir.types import VDeviceAttr, memref_type, shape_of, tensor_type, vdevice_of
from landbridge.passes.fold_scale.steps import Aligned, Steps, multiplies, steps_of
from landbridge.passes.fold_scale.weights import factors_before, scaled
from landbridge.passes.fuse.graph import Graph, inputs_of
from landbridge.passes.fuse.inline import rebuild
from landbridge.passes.fuse.merge import merge

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Plan:
    """Steps to make one, and the input of the call that takes their scale, with its new value, if one does."""

    stage: Generic
    steps: Steps
    scale: Aligned
    argument: int = -1
    weights: Array | None = None


def fold_call(graph: Graph, call: CallOp) -> None:
    """Fold the steps of one call; another call stands in its place where that changed anything."""
    if not _plans(graph, call):
        return
    function = graph.own(call)
    block = function.body.block
    inputs = list(inputs_of(call))
    by_stage: dict[linalg.ops.GenericOp, list[Plan]] = {}
    for plan in _plans(graph, call):
        by_stage.setdefault(plan.stage.op, []).append(plan)
    for op, plans in by_stage.items():
        added: list[tuple[SSAValue, AffineMap]] = []
        replaced: dict[SSAValue, SSAValue] = {}  # steps may start where others ended
        for plan in plans:
            if plan.weights is not None:
                weights = inputs[plan.argument]
                inputs[plan.argument] = _constant_like(graph, call, weights, plan.weights, vdevice_of(weights.type))
            terms: list[Value | float | None] = []
            s = ScalarBuilder(Builder(InsertPoint.before(plan.steps.ops[-1])))
            for array in (plan.scale if multiplies(plan.scale) else None, plan.steps.shift):
                if array is None or array.size == 1:
                    terms.append(None if array is None else float(array.reshape(())))
                    continue
                value = array.astype(np.float32).reshape(array.shape[_leading_units(array) :])
                place = VDeviceAttr.of(vdevice_of(inputs[0].type).index.data)
                inputs.append(_constant_like(graph, call, inputs[0], value, place))
                argument = block.insert_arg(memref_type(value.shape, "float32"), len(inputs) - 1)
                added.append((argument, broadcast_map(value.shape, plan.stage.extents)))
                scalar = op.body.block.insert_arg(plan.steps.root.type, len(plan.stage.ins) + len(added) - 1)
                terms.append(s.wrap(scalar, "float32"))
            root = plan.steps.root
            replaced |= _replace_steps(s, plan.steps, replaced.get(root, root), *terms)
        stage = plans[0].stage
        accesses = [(o.buffer, o.map) for o in stage.ins]
        rebuilt = rebuild(op, [*accesses, *added], [(o.buffer, o.map) for o in stage.outs])
        _drop_copy(view_generic(rebuilt))
    new = CallOp(function.sym_name.data, inputs, list(call.destinations), [r.type for r in call.res])
    at = call.parent
    assert at is not None  # calls come from the blocks of the graph
    at.insert_op_before(new, call)
    graph.record(new, [call])
    for before, after in zip(call.res, new.res, strict=True):
        before.replace_all_uses_with(after)
    graph.forget(call)
    merge(graph, [new])


def _plans(graph: Graph, call: CallOp) -> list[Plan]:
    """What is worth rewriting in the PrimFunc of ``call``."""
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
            plan = _with_weights(graph, inputs, arguments, stage, steps)
            if plan.argument in taken:
                continue
            if plan.weights is None and steps.divides:
                continue
            if multiplies(plan.scale) + (steps.shift is not None) < steps.cost:
                plans.append(plan)
                taken |= {plan.argument} - {-1}
    return plans


def _with_weights(
    graph: Graph, inputs: tuple[SSAValue, ...], arguments: list[SSAValue], stage: Generic, steps: Steps
) -> Plan:
    """The plan for ``steps``, their scale in constant weights when a sum of products comes right before them."""
    source = next((o for o in stage.ins if o.scalar is steps.root), None)
    if multiplies(steps.scale) and source is not None and steps.root.has_one_use():
        whole = shape_of(source.buffer.type) == stage.extents and is_identity(source.map, stage.extents)
        if whole and len(reads_of(source.buffer) or ()) == 1:
            for factor in factors_before(source.buffer, arguments):
                array = _constant(graph, inputs, factor.operand.buffer)
                if array is None or not factor.operand.buffer.has_one_use():
                    continue
                product = scaled(array, factor, steps.scale)
                if product is not None:
                    return Plan(stage, steps, np.ones_like(steps.scale), factor.argument, product)
    return Plan(stage, steps, steps.scale)


def _constant(graph: Graph, inputs: tuple[SSAValue, ...], buffer: SSAValue) -> Array | None:
    """The float32 array an argument is bound to."""
    position = buffer.index if isinstance(buffer, BlockArgument) else len(inputs)
    owner = inputs[position].owner if position < len(inputs) else None
    if not isinstance(owner, ConstantOp):
        return None
    array = graph.module.constants.get(owner.symbol_name)
    return array if array is not None and array.dtype == np.float32 else None


def _aligned(array: Array, operand: Operand, stage: Generic) -> Aligned | None:
    """``array`` with one axis a loop; None when its access is more than a broadcast."""
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


def _leading_units(array: Aligned) -> int:
    return next(i for i, e in enumerate(array.shape) if e != 1)


def _constant_like(graph: Graph, call: CallOp, old: SSAValue, array: Array, place: VDeviceAttr) -> SSAValue:
    """A new constant where ``call`` stands, named after ``old`` when it is a constant too."""
    hint = old.owner.symbol_name if isinstance(old.owner, ConstantOp) else "folded"
    ty = tensor_type(array.shape, "float32", place)
    constant = ConstantOp(graph.module.add_constant(array, hint), ty)
    block = call.parent
    assert block is not None  # calls come from the blocks of the graph
    block.insert_op_before(constant, call)
    return constant.result


def _replace_steps(
    s: ScalarBuilder, steps: Steps, root: SSAValue, scale: Value | float | None, shift: Value | float | None
) -> dict[SSAValue, SSAValue]:
    """Write ``root * scale + shift`` in place of ``steps``; which value stands for their result."""
    value = s.wrap(root, "float32")
    if scale is not None:
        value = value * scale
    if shift is not None:
        value = value + shift
    result = steps.ops[-1].results[0]
    result.replace_all_uses_with(value.ssa)
    for op in reversed(steps.ops):
        known = [v.owner for v in op.operands]
        Rewriter.erase_op(op)
        for constant in dict.fromkeys(known):
            if isinstance(constant, arith.ConstantOp) and constant.result.first_use is None:
                Rewriter.erase_op(constant)
    return {result: value.ssa}


def _drop_copy(stage: Generic) -> None:
    """Let the stage before write the output when ``stage`` has become a copy of its temporary."""
    for operand in stage.ins:
        yields = stage.body.last_op
        assert yields is not None  # a body ends in linalg.yield
        source, target = operand.buffer, stage.outs[0].buffer
        if not is_copy(stage) or yields.operands[0] is not operand.scalar or len(stage.outs) != 1:
            continue
        same = source.type == target.type and is_identity(operand.map, stage.extents) and stage.elementwise
        if same and isinstance(source.owner, memref.AllocOp) and len(reads_of(source) or ()) == 1:
            alloc = source.owner
            Rewriter.erase_op(stage.op)
            source.replace_all_uses_with(target)
            Rewriter.erase_op(alloc)
            return
