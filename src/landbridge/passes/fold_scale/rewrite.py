"""Rewrites the PrimFunc of a call, and its constants, so that runs of steps become one step."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects import arith, linalg, memref
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from landbridge.analysis.accesses import is_copy, reads_of
from landbridge.ir.graph_builder import broadcast_map
from landbridge.ir.graph_ops import CallOp, ConstantOp
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.stages import Generic, is_identity, view_generic
from landbridge.ir.types import VDeviceAttr, element_type, memref_type, tensor_type, vdevice_of
from landbridge.passes.consumed_constants import ConsumedConstants
from landbridge.passes.fold_scale.plans import Products, ScalePlan, plans_of
from landbridge.passes.fold_scale.steps import Aligned, Steps, multiplies
from landbridge.passes.fuse.graph import Graph, inputs_of, value_key
from landbridge.passes.fuse.inline import rebuild
from landbridge.passes.fuse.merge import merge, run_instead
from landbridge.passes.rewrites import rewrite

Array = np.ndarray[Any, Any]


def fold_call(graph: Graph, call: CallOp, consumed: ConsumedConstants, unchanged: set[str]) -> None:
    """Fold the steps of one call, if it has any that fold.

    A new call then replaces ``call``, which is erased, and stages of its PrimFunc are inlined again where that pays.
    What folds in a call without constants follows from its PrimFunc: ``unchanged`` collects the names of those in which
    nothing does. What a PrimFunc becomes otherwise follows from it and from what its stages get (``_written``).
    """
    given = inputs_of(call)
    name, repeats = call.callee_name, graph.repeats([call])
    is_alone = not any(isinstance(value.owner, ConstantOp) for value in given)
    key: Hashable = None
    if repeats > 1 and is_alone:
        if name in unchanged:
            return
        key = (name, "fold_scale")
        if (found := graph.known(key)) is not None:
            function, taken = found
            run_instead(graph, [call], function, [given[i] for i in taken])
            return
    products: Products = {}
    plans = plans_of(graph, call, products)
    if not plans:
        if key is not None:
            unchanged.add(name)
        return
    inputs = _with_constants(graph, call, plans, consumed)
    if repeats > 1 and not is_alone:
        keys = [value_key(value) for value in inputs]
        key = (name, "fold_scale", tuple(map(keys.index, keys)), _written(plans))
        if (found := graph.known(key)) is not None:
            function, taken = found
            run_instead(graph, [call], function, [inputs[i] for i in taken])
            consumed.drop(given)
            return
    folded = _folded(graph, call, consumed, products, inputs)
    if key is not None:
        taken = tuple(inputs.index(value) for value in inputs_of(folded))
        graph.remember(key, graph.function(folded), taken, repeats)


def _by_stage(plans: Sequence[ScalePlan]) -> list[list[ScalePlan]]:
    """Returns ``plans`` in lists, one for each stage."""
    found: dict[linalg.ops.GenericOp, list[ScalePlan]] = {}
    for plan in plans:
        found.setdefault(plan.stage.op, []).append(plan)
    return list(found.values())


def _terms(plan: ScalePlan) -> tuple[Aligned | None, Aligned | None]:
    """Returns what a stage is multiplied by, and what is added to it; None for nothing."""
    return plan.scale if multiplies(plan.scale) else None, plan.steps.shift


def _written(plans: Sequence[ScalePlan]) -> Hashable:
    """Returns what ``plans`` write into a PrimFunc: operations of it, with a number, or the shape of a new operand."""
    found: list[Hashable] = []
    for plan in plans:
        terms = [None if x is None else x.tobytes() if x.size == 1 else x.shape for x in _terms(plan)]
        found.append((plan.stage.op, plan.steps.root, plan.steps.ops, plan.argument, *terms))
    return tuple(found)


def _with_constants(
    graph: Graph, call: CallOp, plans: Sequence[ScalePlan], consumed: ConsumedConstants
) -> list[SSAValue]:
    """Returns the inputs of the call that will replace ``call``: scaled weights replace old ones, and the terms of
    ``plans`` that are no numbers are appended, in the order of ``_Rewrite``.
    """
    inputs = list(inputs_of(call))

    def load(old: SSAValue, array: Array, vdevice: VDeviceAttr) -> SSAValue:
        """Inserts a constant before the call, named after ``old`` if that is a constant; returns its value."""
        hint = old.owner.symbol_name if isinstance(old.owner, ConstantOp) else "folded"
        symbol = graph.module.add_constant(array, hint)
        consumed.keep(symbol)
        constant = ConstantOp(symbol, tensor_type(array.shape, "float32", vdevice))
        Rewriter.insert_op(constant, InsertPoint.before(call))
        return constant.result

    for plan in (plan for of_stage in _by_stage(plans) for plan in of_stage):
        if plan.weights is not None:
            weights = inputs[plan.argument]
            inputs[plan.argument] = load(weights, plan.weights, vdevice_of(weights.type))
        for term in _terms(plan):
            if term is not None and term.size != 1:
                vdevice = VDeviceAttr.of(vdevice_of(inputs[0].type).index.data)
                inputs.append(load(inputs[0], _compact(term), vdevice))
    return inputs


def _folded(
    graph: Graph, call: CallOp, consumed: ConsumedConstants, products: Products, inputs: Sequence[SSAValue]
) -> CallOp:
    """Returns the call that replaces ``call``, in which steps fold, with ``inputs``, see ``_with_constants``."""
    rewrite = _Rewrite(graph.owned(call).body.block, len(inputs_of(call)))
    for plans in _by_stage(plans_of(graph, call, products)):
        _drop_copy(rewrite.stage(plans))
    new = CallOp(call.callee_name, inputs, list(call.destinations), [r.type for r in call.res])
    Rewriter.insert_op(new, InsertPoint.before(call))
    graph.record(new, [call])
    for before, after in zip(call.res, new.res, strict=True):
        before.replace_all_uses_with(after)
    call_inputs = list(inputs_of(call))
    graph.forget(call)
    consumed.drop(call_inputs)
    return merge(graph, [new])


class _Rewrite:
    """Rewrites ``block``, the body of a PrimFunc of ``count`` inputs: constants that are no numbers become further
    ones.
    """

    def __init__(self, block: Block, count: int) -> None:
        self._block, self._count = block, count

    def stage(self, plans: Sequence[ScalePlan]) -> Generic:
        """Replace the steps of each of ``plans``, all of one stage, by at most one product and one sum; returns the new
        stage. The old stage is erased.
        """
        stage = plans[0].stage
        ins = [(o.buffer, o.map) for o in stage.ins]
        replaced: dict[SSAValue, SSAValue] = {}  # steps may start where others ended
        for plan in plans:
            steps = plan.steps
            s = ScalarBuilder(Builder(InsertPoint.before(steps.ops[-1])))
            scale, shift = (None if term is None else self._term(s, stage, ins, term) for term in _terms(plan))
            root = replaced.get(steps.root, steps.root)
            replaced[steps.ops[-1].results[0]] = _replace_steps(s, steps, root, scale, shift)
        return view_generic(rebuild(stage.op, ins, [(o.buffer, o.map) for o in stage.outs]))

    def _term(
        self, s: ScalarBuilder, stage: Generic, ins: list[tuple[SSAValue, AffineMap]], array: Aligned
    ) -> Value | float:
        """Returns ``array`` in the body of ``stage``: a number, or an element of a new operand, appended to ``ins``."""
        if array.size == 1:
            return float(array.reshape(()))
        shape = _compact(array).shape
        argument = self._block.insert_arg(memref_type(shape, "float32"), self._count)
        self._count += 1
        scalar = stage.body.insert_arg(element_type("float32"), len(ins))
        ins.append((argument, broadcast_map(shape, stage.extents)))
        return s.wrap(scalar, "float32")


def _compact(array: Aligned) -> Array:
    """Returns ``array`` in float32, without its leading axes of extent 1."""
    return array.astype(np.float32).reshape(array.shape[_leading_units(array) :])


def _leading_units(array: Aligned) -> int:
    return next(i for i, e in enumerate(array.shape) if e != 1)


def _replace_steps(
    s: ScalarBuilder, steps: Steps, root: SSAValue, scale: Value | float | None, shift: Value | float | None
) -> SSAValue:
    """Emit ``root * scale + shift`` in place of ``steps``; returns the new result.

    A scale or shift that is None is left out. The operations of ``steps`` are erased, with constants that only they
    used.
    """
    value = s.wrap(root, "float32")
    if scale is not None:
        value = value * scale
    if shift is not None:
        value = value + shift
    steps.ops[-1].results[0].replace_all_uses_with(value.ssa)
    for op in reversed(steps.ops):
        known = [v.owner for v in op.operands]
        Rewriter.erase_op(op)
        for constant in dict.fromkeys(known):
            if isinstance(constant, arith.ConstantOp) and constant.result.first_use is None:
                Rewriter.erase_op(constant)
    return value.ssa


@rewrite("fold_scale.copy", "a last stage that only copies a temporary is removed")
def _drop_copy(stage: Generic) -> None:
    """If ``stage`` only copies a temporary that it alone reads, let the stage before it write the output directly.

    ``stage`` and the temporary's allocation are erased then; otherwise nothing changes.
    """
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
            block = alloc.parent_block()
            if isinstance(target.owner, memref.AllocOp) and block is not None:  # it may stand behind its new writer
                block.detach_op(target.owner)
                block.insert_op_before(target.owner, alloc)
            source.replace_all_uses_with(target)
            Rewriter.erase_op(alloc)
            return
