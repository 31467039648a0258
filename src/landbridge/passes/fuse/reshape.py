"""Moves calls across ``lb.view``: a call then reads the source of a reshape instead of its result."""

from __future__ import annotations

from xdsl.dialects import bufferization, func, linalg
from xdsl.dialects.builtin import FunctionType, MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from landbridge.analysis.accesses import loops_visible, pointwise_stage, reads_of
from landbridge.ir.allocations import tensor_alloc
from landbridge.ir.graph_ops import CallOp, ViewOp
from landbridge.ir.stages import Generic, is_identity, view_generic
from landbridge.ir.types import dtype_of, extents_attr, shape_of, tensor_type, vdevice_of
from landbridge.passes.fuse.graph import Graph, erase_dead_views, inputs_of, source_of
from landbridge.passes.fuse.inline import rebuild
from landbridge.passes.rewrites import rewrite
from landbridge.records import record
from landbridge.sizes.size import at_least

Shape = tuple[int, ...]


@record(frozen=True)
class Group:
    """Adjacent dimensions of one shape that hold the same elements as those of another."""

    old: tuple[int, ...]
    new: tuple[int, ...]


def groups_of(old: Shape, new: Shape) -> list[Group] | None:
    """Returns the finest groups that map ``old`` to ``new``, row-major; None if a dimension is 0, or the groups are
    undecided."""
    if 0 in old or 0 in new:
        return None
    groups: list[Group] = []
    i = j = 0
    while i < len(old) and j < len(new):
        i0, j0, a, b = i, j, old[i], new[j]
        i, j = i + 1, j + 1
        while a != b:
            less = at_least(b, a)
            if less is None or (i if less else j) == len(old if less else new):
                return None
            if less:
                a, i = a * old[i], i + 1
            else:
                b, j = b * new[j], j + 1
        groups.append(Group(tuple(range(i0, i)), tuple(range(j0, j))))
    rest = Group(tuple(range(i, len(old))), tuple(range(j, len(new))))
    if rest.old or rest.new:
        groups.append(rest)
    return groups


def crossing(graph: Graph, call: CallOp, value: SSAValue) -> bool:
    """Returns whether ``cross`` can make ``call`` read the source of ``value`` directly."""
    return _reshaped(graph, call, value) is not None or bool(_retyped(graph, call, value))


def crossing_pointwise(graph: Graph, call: CallOp, value: SSAValue) -> bool:
    """Returns whether ``cross`` can do that by giving the loops of an elementwise ``call`` the shape of the source."""
    return value is source_of(value) or _reshaped(graph, call, value) is not None


def cross(graph: Graph, call: CallOp, value: SSAValue) -> CallOp:
    """Make ``call`` read the source of ``value``, which reshapes it, and return the new call; ``crossing`` must
    hold."""
    source = source_of(value)
    if source is value:
        return call
    operands = _reshaped(graph, call, value)
    crossed = (
        _retype(graph, call, value) if operands is None else _reshape(graph, call, shape_of(source.type), operands)
    )
    erase_dead_views(source)
    return crossed


@record(frozen=True)
class _Operand:
    """The new access of an input of a reshaped elementwise stage."""

    shape: Shape
    map: AffineMap


@rewrite("fuse.reshape", "an elementwise call computes in the shape before a reshape")
def _reshaped(graph: Graph, call: CallOp, value: SSAValue) -> list[_Operand] | None:
    """Returns the input accesses of an elementwise call whose loops get the shape of the source of ``value``.

    Returns None unless the call is one elementwise stage that reads ``value`` at its loop indices, and every input, in
    every group of dimensions that the reshape preserves, either follows the loops or is broadcast.
    """
    stage = graph.pointwise(call)
    if stage is None or len(inputs_of(call)) != len(stage.ins) or _knows_indices(stage):
        return None
    if any(vdevice_of(v.type).axis_separators for v in (*inputs_of(call), *call.res)):
        return None
    if shape_of(value.type) != stage.extents or not isinstance(call.destinations[0].owner, bufferization.AllocTensorOp):
        return None
    arguments = graph.function(call).body.block.args
    accesses = {o.buffer: o for o in stage.ins}
    if set(accesses) != set(arguments[:-1]):
        return None
    inputs = [accesses[a] for a in arguments[:-1]]
    if not all(is_identity(o.map, stage.extents) for o, v in zip(inputs, inputs_of(call), strict=True) if v is value):
        return None
    new = shape_of(source_of(value).type)
    groups = groups_of(stage.extents, new)
    if groups is None:
        return None
    operands = []
    for o in inputs:
        operand = _regroup(shape_of(o.buffer.type), o.map, stage.extents, new, groups)
        if operand is None:
            return None
        operands.append(operand)
    return operands


def _knows_indices(stage: Generic) -> bool:
    return any(isinstance(op, linalg.ops.IndexOp) for op in stage.body.ops)


def _regroup(shape: Shape, m: AffineMap, old: Shape, new: Shape, groups: list[Group]) -> _Operand | None:
    moving = []
    for extent, e in zip(shape, m.results, strict=True):
        if extent == 1:
            continue
        if not isinstance(e, AffineDimExpr) or old[e.position] != extent:
            return None
        moving.append(e.position)
    if moving != sorted(set(moving)):
        return None
    followed: list[int] = []
    whole = True
    for group in groups:
        real = [d for d in group.old if old[d] != 1]
        present = [d for d in real if d in moving]
        if present and present != real:
            return None
        if present:
            followed.extend(group.new)
        elif real:
            whole = False
    if whole:
        return _Operand(new, AffineMap.identity(len(new)))
    if not followed:
        return _Operand(shape, AffineMap(len(new), 0, tuple(AffineExpr.constant(0) for _ in shape)))
    dims = tuple(AffineExpr.dimension(d) for d in followed)
    return _Operand(tuple(new[d] for d in followed), AffineMap(len(new), 0, dims))


def _reshape(graph: Graph, call: CallOp, shape: Shape, operands: list[_Operand]) -> CallOp:
    """Returns the elementwise ``call`` with loops of ``shape``; its result is viewed in the old shape."""
    block = call.parent
    assert block is not None  # calls come from the blocks of the graph

    def change(function: func.FuncOp) -> None:
        _reshape_function(function, shape, operands)

    function = graph.changed(call, ("reshape", shape, tuple(operands)), change)
    old = call.res[0].type
    ty = tensor_type(shape, dtype_of(old), vdevice_of(old))
    inputs = [_as_shape(v, o.shape, call) for v, o in zip(inputs_of(call), operands, strict=True)]
    destination = tensor_alloc(ty)
    new = CallOp(function.sym_name.data, inputs, [destination.tensor], [ty])
    view = ViewOp(new.res[0], old)
    block.insert_ops_before([destination, new, view], call)
    graph.record(new, [call])
    call.res[0].replace_all_uses_with(view.result)
    graph.forget(call)
    return new


def _reshape_function(function: func.FuncOp, shape: Shape, operands: list[_Operand]) -> None:
    """Give the loops of an elementwise PrimFunc another ``shape``, with ``operands`` as accesses of its inputs."""
    stage = pointwise_stage(function)
    assert stage is not None  # ``_reshaped`` has checked it
    positions: dict[SSAValue, int] = {a: i for i, a in enumerate(function.body.block.args)}
    order = [positions[b] for b in stage.op.inputs]
    for i, operand in enumerate(operands):
        _retype_argument(function, i, operand.shape)
    _retype_argument(function, len(operands), shape)
    arguments = function.body.block.args
    ins = [(arguments[i], operands[i].map) for i in order]
    rebuild(stage.op, ins, [(arguments[-1], AffineMap.identity(len(shape)))], shape)


def _as_shape(value: SSAValue, shape: Shape, before: CallOp) -> SSAValue:
    """Returns ``value`` viewed as ``shape``."""
    source = source_of(value)
    if shape_of(source.type) == shape:
        return source
    view = ViewOp(source, tensor_type(shape, dtype_of(value.type), vdevice_of(value.type)))
    block = before.parent
    assert block is not None  # calls come from the blocks of the graph
    block.insert_op_before(view, before)
    return view.result


def _retype_argument(function: func.FuncOp, index: int, shape: Shape) -> None:
    """Give an argument of a PrimFunc another shape; the caller adapts its accesses."""
    block = function.body.block
    old = block.args[index]
    ty = old.type
    assert isinstance(ty, MemRefType)
    new = block.insert_arg(MemRefType(ty.element_type, extents_attr(shape), ty.layout, ty.memory_space), index)
    old.replace_all_uses_with(new)
    block.erase_arg(old)
    function.function_type = FunctionType.from_lists([a.type for a in block.args], [])


@rewrite("fuse.unit_dimensions", "a call reads a tensor before a reshape that adds or removes unit dimensions")
def _retyped(graph: Graph, call: CallOp, value: SSAValue) -> bool:
    """Returns whether ``value`` differs from its source in unit dimensions only, and only generic stages read it."""
    before, after = shape_of(source_of(value).type), shape_of(value.type)
    if [e for e in before if e != 1] != [e for e in after if e != 1]:
        return False
    arguments = graph.function(call).body.block.args
    for argument, v in zip(arguments, inputs_of(call), strict=False):
        if v is not value:
            continue
        reads = reads_of(argument)
        if reads is None:
            return False
        for stage in (r.stage for r in reads):
            maps = [_without_units(o.map, before, after) if o.buffer is argument else o.map for o in stage.ins]
            if not loops_visible([*maps, *(o.map for o in stage.outs)], len(stage.extents)):
                return False
    return True


def _without_units(m: AffineMap, before: Shape, after: Shape) -> AffineMap:
    """Returns an access of ``after`` as one of ``before``, which differs in unit dimensions."""
    real = iter([e for e, extent in zip(m.results, after, strict=True) if extent != 1])
    results = tuple(next(real) if extent != 1 else AffineExpr.constant(0) for extent in before)
    return AffineMap(m.num_dims, 0, results)


def _retype(graph: Graph, call: CallOp, value: SSAValue) -> CallOp:
    source = source_of(value)
    before, after = shape_of(source.type), shape_of(value.type)
    positions = tuple(i for i, v in enumerate(inputs_of(call)) if v is value)

    def change(function: func.FuncOp) -> None:
        for i in positions:
            for read in reads_of(function.body.block.args[i]) or []:
                _insert_units(read.stage.op, function.body.block.args[i], before, after)
            _retype_argument(function, i, before)

    graph.changed(call, ("retype", positions, before), change)
    for i in positions:
        call.operands[i] = source
    return call


def _insert_units(op: linalg.ops.GenericOp, buffer: SSAValue, before: Shape, after: Shape) -> None:
    """Rewrite the reads of ``buffer``, seen as ``after``, to reads of it as ``before``."""
    if op.parent is None:  # already rebuilt: it reads the buffer more than once
        return
    stage = view_generic(op)
    ins = [(o.buffer, _without_units(o.map, before, after) if o.buffer is buffer else o.map) for o in stage.ins]
    rebuild(op, ins, [(o.buffer, o.map) for o in stage.outs])
