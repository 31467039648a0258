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
    nothing does. What folds into numbers follows from the PrimFunc and these numbers (``_numbers``).
    """
    given = inputs_of(call)
    name, repeats = call.callee_name, graph.repeats([call])
    has_constants = any(isinstance(value.owner, ConstantOp) for value in given)
    key: Hashable = None
    if repeats > 1 and not has_constants:
        if name in unchanged:
            return
        key = (name, "fold_scale")
        if _run_known(graph, call, key):
            return
    products: Products = {}
    plans = plans_of(graph, call, products)
    if not plans:
        if key is not None:
            unchanged.add(name)
        return
    if repeats > 1 and has_constants and (numbers := _numbers(plans)) is not None:
        keys = [value_key(value) for value in given]
        key = (name, "fold_scale", tuple(map(keys.index, keys)), numbers)
        if _run_known(graph, call, key):
            return
    folded = _folded(graph, call, consumed, products)
    if key is not None and all(value in given for value in inputs_of(folded)):
        taken = tuple(given.index(value) for value in inputs_of(folded))
        graph.remember(key, graph.function(folded), taken, repeats)


def _run_known(graph: Graph, call: CallOp, key: Hashable) -> bool:
    """Returns whether a PrimFunc is known by ``key``; a call of it then replaces ``call``."""
    if (found := graph.known(key)) is None:
        return False
    function, taken = found
    given = inputs_of(call)
    run_instead(graph, [call], function, [given[i] for i in taken])
    return True


def _numbers(plans: Sequence[ScalePlan]) -> Hashable:
    """Returns what ``plans`` write where they write numbers alone: operations of the PrimFunc, with the numbers; None
    where they change constants of the call, or give it others.
    """
    found: list[Hashable] = []
    for plan in plans:
        scale, shift = plan.scale, plan.steps.shift
        if plan.weights is not None or scale.size != 1 or (shift is not None and shift.size != 1):
            return None
        number = None if shift is None else shift.tobytes()
        found.append((plan.stage.op, plan.steps.root, plan.steps.ops, scale.tobytes(), number))
    return tuple(found)


def _folded(graph: Graph, call: CallOp, consumed: ConsumedConstants, products: Products) -> CallOp:
    """Returns the call that replaces ``call``, in which steps fold."""
    rewriter = _Rewrite(graph, call, consumed, graph.owned(call).body.block)
    by_stage: dict[linalg.ops.GenericOp, list[ScalePlan]] = {}
    for plan in plans_of(graph, call, products):
        by_stage.setdefault(plan.stage.op, []).append(plan)
    for plans in by_stage.values():
        _drop_copy(rewriter.stage(plans))
    new = CallOp(call.callee_name, rewriter.inputs, list(call.destinations), [r.type for r in call.res])
    Rewriter.insert_op(new, InsertPoint.before(call))
    graph.record(new, [call])
    for before, after in zip(call.res, new.res, strict=True):
        before.replace_all_uses_with(after)
    call_inputs = list(inputs_of(call))
    graph.forget(call)
    consumed.drop(call_inputs)
    return merge(graph, [new])


class _Rewrite:
    """Rewrites ``block``, the body of the PrimFunc that ``call`` calls. ``inputs`` are the inputs of the call that will
    replace ``call``: scaled weights replace old ones, and new constants are appended.
    """

    def __init__(self, graph: Graph, call: CallOp, consumed: ConsumedConstants, block: Block) -> None:
        self.inputs = list(inputs_of(call))
        self._graph, self._call, self._consumed, self._block = graph, call, consumed, block

    def stage(self, plans: Sequence[ScalePlan]) -> Generic:
        """Replace the steps of each of ``plans``, all of one stage, by at most one product and one sum; returns the new
        stage.

        Where a plan has scaled weights, they replace the weights in ``inputs``. The old stage is erased.
        """
        stage = plans[0].stage
        ins = [(o.buffer, o.map) for o in stage.ins]
        replaced: dict[SSAValue, SSAValue] = {}  # steps may start where others ended
        for plan in plans:
            steps = plan.steps
            if plan.weights is not None:
                weights = self.inputs[plan.argument]
                self.inputs[plan.argument] = self._constant(weights, plan.weights, vdevice_of(weights.type))
            s = ScalarBuilder(Builder(InsertPoint.before(steps.ops[-1])))
            scale = self._term(s, stage, ins, plan.scale) if multiplies(plan.scale) else None
            shift = None if steps.shift is None else self._term(s, stage, ins, steps.shift)
            root = replaced.get(steps.root, steps.root)
            replaced[steps.ops[-1].results[0]] = _replace_steps(s, steps, root, scale, shift)
        return view_generic(rebuild(stage.op, ins, [(o.buffer, o.map) for o in stage.outs]))

    def _term(
        self, s: ScalarBuilder, stage: Generic, ins: list[tuple[SSAValue, AffineMap]], array: Aligned
    ) -> Value | float:
        """Returns ``array`` in the body of ``stage``: a number, or an element of a new operand, appended to ``ins``."""
        if array.size == 1:
            return float(array.reshape(()))
        value = array.astype(np.float32).reshape(array.shape[_leading_units(array) :])
        vdevice = VDeviceAttr.of(vdevice_of(self.inputs[0].type).index.data)
        self.inputs.append(self._constant(self.inputs[0], value, vdevice))
        argument = self._block.insert_arg(memref_type(value.shape, "float32"), len(self.inputs) - 1)
        scalar = stage.body.insert_arg(element_type("float32"), len(ins))
        ins.append((argument, broadcast_map(value.shape, stage.extents)))
        return s.wrap(scalar, "float32")

    def _constant(self, old: SSAValue, array: Array, vdevice: VDeviceAttr) -> SSAValue:
        """Insert a constant tensor with the elements of ``array``, on ``vdevice``, before the call; returns its value.

        It is named after ``old`` if that is a constant.
        """
        hint = old.owner.symbol_name if isinstance(old.owner, ConstantOp) else "folded"
        symbol = self._graph.module.add_constant(array, hint)
        self._consumed.keep(symbol)
        constant = ConstantOp(symbol, tensor_type(array.shape, "float32", vdevice))
        Rewriter.insert_op(constant, InsertPoint.before(self._call))
        return constant.result


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
