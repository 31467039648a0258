"""Scale constant weights instead of results: the multiplication of a BatchNormalization behind a convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith, func, linalg
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from landbridge.ir.graph_ops import CallOp, ConstantOp
from landbridge.ir.module import IRModule
from landbridge.ir.prim_ops import PadOp
from landbridge.ir.stages import Generic, Operand, is_identity, view_prim
from landbridge.ir.types import dtype_of, shape_of
from landbridge.passes.fuse.accesses import erase, is_copy, pointwise_stage
from landbridge.passes.fuse.graph import Graph
from landbridge.passes.fuse.merge import merge
from landbridge.passes.fuse.pointwise import only_consumer
from landbridge.passes.registry import register_pass

Array = np.ndarray[Any, Any]


@register_pass("fold_scale")
def fold_scale(module: IRModule) -> None:
    """Multiply constant weights, not the results of the convolution or matrix multiplication, by a constant."""
    graph = Graph(module)
    for block in graph.blocks:
        for call in graph.calls(block):
            while call in graph.order and _fold(graph, call):
                pass


@dataclass(frozen=True)
class _Factor:
    """A constant that an elementwise stage first multiplies by: its array, and the loop each axis follows."""

    multiplication: arith.MulfOp
    argument: SSAValue
    array: Array
    loops: tuple[int, ...]


def _fold(graph: Graph, call: CallOp) -> bool:
    """Fold the multiplication that begins the one elementwise reader of ``call``; whether there was one."""
    if len(call.res) != 1 or dtype_of(call.res[0].type) != "float32":
        return False
    consumers = graph.consumers(call)
    if consumers is None or len(consumers) != 1:
        return False
    reader, value = consumers[0]
    if value is not call.res[0] or len(reader.res) != 1 or not only_consumer(graph, call, reader, value):
        return False
    contraction = _contraction(graph.function(call))
    factor = None if contraction is None else _factor(graph, reader, value)
    if contraction is None or factor is None:
        return False
    arguments: list[SSAValue] = list(graph.function(call).body.block.args)
    for operand in contraction.ins:
        position = arguments.index(operand.buffer) if operand.buffer in arguments else len(call.inputs)
        array = _constant(graph, call.inputs[position]) if position < len(call.inputs) else None
        scaled = None if array is None else _scaled(array, operand, contraction.outs[0], factor)
        if scaled is not None:
            _put_constant(graph, call, position, scaled)
            _drop_multiplication(graph, reader, value)
            return True
    return False


def _contraction(function: func.FuncOp) -> Generic | None:
    """The sum of products that is all a PrimFunc does, pads of its inputs aside; it starts from zero."""
    view = view_prim(function)
    generics = list(view.generics())
    if len(generics) != 1 or not generics[0].reduces or len(generics[0].outs) != 1:
        return None
    stage = generics[0]
    fills = [op for op in view.stages if isinstance(op, linalg.ops.FillOp)]
    if len(fills) != 1 or not all(op is stage.op or isinstance(op, PadOp | linalg.ops.FillOp) for op in view.stages):
        return None
    start = fills[0].inputs[0].owner
    if not isinstance(start, arith.ConstantOp) or not isinstance(start.value, FloatAttr) or start.value.value.data:
        return None
    ops = list(stage.body.ops)
    if len(ops) != 3 or not isinstance(ops[0], arith.MulfOp) or not isinstance(ops[1], arith.AddfOp):
        return None
    product, total = ops[0], ops[1]
    factors = {product.lhs, product.rhs} == {o.scalar for o in stage.ins}
    sums = {total.lhs, total.rhs} == {product.result, stage.outs[0].scalar}
    return stage if factors and sums and len(stage.ins) == 2 and ops[2].operands[0] is total.result else None


def _factor(graph: Graph, reader: CallOp, value: SSAValue) -> _Factor | None:
    """The constant that ``reader`` multiplies its input ``value`` by before it does anything else with it."""
    function = graph.function(reader)
    stage = pointwise_stage(function)
    if stage is None:
        return None
    arguments: list[SSAValue] = list(function.body.block.args)
    argument = arguments[list(reader.inputs).index(value)]
    operands = [o for o in stage.ins if o.buffer is argument]
    if len(operands) != 1 or not is_identity(operands[0].map, stage.extents):
        return None
    x = operands[0].scalar
    uses = list(x.uses)
    if shape_of(argument.type) != stage.extents or len(uses) != 1 or not isinstance(uses[0].operation, arith.MulfOp):
        return None
    multiplication = uses[0].operation
    other = multiplication.rhs if multiplication.lhs is x else multiplication.lhs
    if isinstance(other.owner, arith.ConstantOp) and isinstance(other.owner.value, FloatAttr):
        return _Factor(multiplication, x, np.array(other.owner.value.value.data, np.float32), ())
    for o in stage.ins:
        if o.scalar is other:
            array = _constant(graph, reader.inputs[arguments.index(o.buffer)])
            loops = _loops(o, stage)
            return None if array is None or loops is None else _Factor(multiplication, x, array, loops)
    return None


def _loops(operand: Operand, stage: Generic) -> tuple[int, ...] | None:
    """The loop that each axis follows, -1 for an axis of one element; None for any other access."""
    loops = []
    for e, extent in zip(operand.map.results, shape_of(operand.buffer.type), strict=True):
        if extent == 1:
            loops.append(-1)
        elif isinstance(e, AffineDimExpr) and stage.extents[e.position] == extent:
            loops.append(e.position)
        else:
            return None
    return tuple(loops)


def _scaled(weights: Array, operand: Operand, result: Operand, factor: _Factor) -> Array | None:
    """``weights`` times the factor; None when an axis of the factor is no axis of the weights."""
    axes: dict[int, int] = {}
    for i, loop in enumerate(factor.loops):
        if loop < 0:
            continue
        index = result.map.results[loop]
        axis = next((a for a, e in enumerate(operand.map.results) if e == index), -1)
        if axis < 0 or axis in axes or weights.shape[axis] != factor.array.shape[i]:
            return None
        axes[axis] = i
    real = [i for i, loop in enumerate(factor.loops) if loop >= 0]
    order = [real.index(axes[a]) for a in sorted(axes)]
    compact = factor.array.reshape([factor.array.shape[i] for i in real]).transpose(order)
    aligned = compact.reshape([weights.shape[a] if a in axes else 1 for a in range(weights.ndim)])
    with np.errstate(over="ignore"):
        scaled: Array = weights * aligned
    return scaled if np.isfinite(scaled).all() else None


def _put_constant(graph: Graph, call: CallOp, position: int, array: Array) -> None:
    old = call.inputs[position]
    block = call.parent
    assert block is not None and isinstance(old.owner, ConstantOp)  # ``_constant`` has seen it
    symbol = graph.module.add_constant(array, old.owner.symbol.root_reference.data)
    constant = ConstantOp(symbol, old.type)
    block.insert_op_before(constant, call)
    call.operands[position] = constant.result


def _drop_multiplication(graph: Graph, reader: CallOp, value: SSAValue) -> None:
    """Take the multiplication out of ``reader``, and ``reader`` out of the graph when it does nothing else."""
    graph.own(reader)
    factor = _factor(graph, reader, value)
    assert factor is not None  # the PrimFunc is the one that had it, or its copy
    factors = [v.owner for v in factor.multiplication.operands]
    factor.multiplication.result.replace_all_uses_with(factor.argument)
    erase(factor.multiplication)
    for op in factors:
        if isinstance(op, arith.ConstantOp) and op.result.first_use is None:
            erase(op)
    stage = pointwise_stage(graph.function(reader))
    assert stage is not None  # still the same stage
    if is_copy(stage) and reader.res[0].type == value.type:
        reader.res[0].replace_all_uses_with(value)
        graph.remove(reader)
    else:
        merge(graph, [reader])


def _constant(graph: Graph, value: SSAValue) -> Array | None:
    """The float32 array of a constant."""
    if not isinstance(value.owner, ConstantOp):
        return None
    array = graph.module.constants.get(value.owner.symbol.root_reference.data)
    return array if array is not None and array.dtype == np.float32 else None
