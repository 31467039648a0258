"""The rewrite of ``pack`` over a graph: calls and concatenations are replaced by blocked ones."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import cast

from xdsl.dialects import bufferization
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from landbridge.analysis.axis_classes import AxisClass, axis_classes
from landbridge.analysis.free_rows import has_free_pixels, has_free_rows
from landbridge.ir.allocations import tensor_alloc
from landbridge.ir.copy_prims import CopyPrims
from landbridge.ir.graph_ops import (
    CallOp,
    ConcatOp,
    ConstantOp,
    PackOp,
    ToVDeviceOp,
    UnpackOp,
    ViewOp,
    graphs_in,
    viewed,
)
from landbridge.ir.main_attributes import aliases, io_names
from landbridge.ir.module import IRModule, packed_parameters
from landbridge.ir.op_attributes import node_name, set_node_name
from landbridge.ir.stages import PrimView, view_prim
from landbridge.ir.traversal import operations
from landbridge.ir.types import AnyTensor, shape_of, vdevice_of
from landbridge.passes.consumed_constants import ConsumedConstants
from landbridge.passes.lower.prims import narrow_is_cheaper
from landbridge.passes.pack.blocked_values import BlockedValues
from landbridge.passes.pack.layout import Layout
from landbridge.passes.pack.rules import Blocking, Candidate, blocking_of, sums_its_channels
from landbridge.passes.pack.split import split_prim
from landbridge.passes.pack.unshare import unshare
from landbridge.passes.rewrites import rewrite
from landbridge.records import record
from landbridge.targets import Target
from landbridge.targets.grid import grid_limits

#: The lanes of a pixel of an image: RGBA.
_PIXEL_LANES = 4


def pack_graph(module: IRModule) -> None:
    """Block the calls that the rules select, and remove reorders that then have no readers."""
    _Packer(module).block(module.main.body.block, BlockedValues(module, CopyPrims(module)))


def _lanes(target: Target) -> int:
    """Returns the number of adjacent channels in blocked layouts of ``target``; 1 if plain layouts are better.

    Work-items of a GPU read adjacent pixels of a plain layout together, and plain loops have no lanes; a CPU's vectors
    need blocks.
    """
    limits = grid_limits(target)
    if target.form == "loops" or (limits is not None and not limits.core_vectors):
        return 1
    return max(2, target.vector_bits // 32)


def _aliased(module: IRModule) -> set[SSAValue]:
    """Returns the outputs of @main for which the memory of an input is requested."""
    end = module.main.body.block.last_op
    assert end is not None  # a block ends in func.return
    requested = aliases(module.main)
    named = zip(io_names(module.main)[1], end.operands, strict=False)
    return {viewed(value) for name, value in named if name in requested}


@record
class _Decision:
    """Whether a call gets a separate argument for each stage first; else how it is blocked, and the name of the blocked
    PrimFunc once there is one.
    """

    unshares: bool
    blocking: Blocking | None
    blocked: str = ""


class _Packer:
    def __init__(self, module: IRModule) -> None:
        self._module = module
        self._tiles = [_lanes(module.target_of(i)) for i in range(len(module.vdevices))]
        self._narrow = [narrow_is_cheaper(module.target_of(i)) for i in range(len(module.vdevices))]
        self._prims = module.prims()
        self._parameters = packed_parameters(module)
        self._consumed = ConsumedConstants(module)
        self._views: dict[str, tuple[PrimView, list[AxisClass]]] = {}
        #: What was decided for calls of a PrimFunc whose operands have the same properties, as those of equal layers.
        self._decided: dict[Hashable, _Decision] = {}
        #: What is to be in the memory of an input: all but what a run writes of it is from outside the program.
        self._states = _aliased(module)

    def block(self, block: Block, values: BlockedValues) -> None:
        """Rewrite the operations of ``block``."""
        for op in operations(block):
            for region in graphs_in(op):
                self.block(region.block, values.nested())
            if isinstance(op, ViewOp):
                for tile in {*self._tiles, _PIXEL_LANES}:
                    _view(op, tile, values)
            elif isinstance(op, ConcatOp | CallOp):
                device = vdevice_of(op.results[0].type).index.data
                tile = _PIXEL_LANES if self._is_of_images(op, values) else self._tiles[device]
                if tile < 2:
                    continue
                if isinstance(op, ConcatOp):
                    _concat(op, tile, values)
                else:
                    self._call(op, tile, self._narrow[device], values)
        _drop_unused_reorders(block)

    def _is_of_images(self, op: ConcatOp | CallOp, values: BlockedValues) -> bool:
        """Returns whether a result of ``op`` is an image whose layout is free, or an operand has a twin with blocks
        that are the lanes of a pixel.
        """
        if any((v, _PIXEL_LANES) in values.twins for v in op.operands):
            return True
        return any(has_free_pixels(self._module, vdevice_of(result.type)) for result in op.results)

    def _call(self, op: CallOp, tile: int, narrow: bool, values: BlockedValues) -> None:
        if any(vdevice_of(v.type).axis_separators for v in (*op.inputs, *op.res)):
            return  # the axis separators were requested for these axes
        name = op.callee_name
        if name not in self._views:
            view = view_prim(self._prims[name])
            self._views[name] = (view, axis_classes(view))
        prim, classes = self._views[name]
        if prim.has_own_order or next(prim.generics(), None) is None:
            return
        arguments = prim.function.body.block.args
        inputs, outputs = arguments[: len(op.inputs)], arguments[len(op.inputs) :]
        read = list(zip(op.inputs, inputs, strict=True))
        weights = {a for v, a in read if self._is_weight(v)}
        given = {a for v, a in read if self._is_given(viewed(v))}
        blocked = {a for v, a in read if (v, tile) in values.twins}
        # What lies in rows is blocked where it can be, so that its readers need no reorder.
        blocked |= {a for r, a in zip(op.res, outputs, strict=True) if has_free_rows(self._module, vdevice_of(r.type))}
        key = (name, tile, narrow, frozenset(weights), frozenset(given), frozenset(blocked))
        decision = self._decided.get(key)
        if decision is None:
            whole = [c if not c.group % tile else replace(c, fixed=True) for c in classes]
            candidate = Candidate(prim, whole, inputs, outputs, weights, given, blocked, tile, narrow)
            unshares = sums_its_channels(candidate)
            decision = self._decided[key] = _Decision(unshares, None if unshares else blocking_of(candidate))
        if decision.unshares:
            unshared = self._unshared(op)
            if unshared is not None:
                self._call(unshared, tile, narrow, values)
        elif decision.blocking is not None:
            if not decision.blocked:
                self._module.prim_count += 1
                decision.blocked = f"{name}_p{self._module.prim_count}"
                self._module.op.body.block.add_op(split_prim(prim, decision.blocked, decision.blocking))
            self._replace(op, prim, decision.blocking, decision.blocked, values)

    def _is_given(self, value: SSAValue) -> bool:
        """Returns whether ``value`` is from outside the program, all of it or all but what a run writes of a state."""
        owner = value.owner
        if isinstance(owner, ConcatOp):
            return all(isinstance(viewed(operand).owner, Block) for operand in owner.operands)
        return isinstance(owner, Block) or value in self._states

    def _is_weight(self, value: SSAValue) -> bool:
        """Returns whether ``value`` is a constant, or a parameter that is packed once for each value it gets."""
        while isinstance(value.owner, ToVDeviceOp):
            value = value.owner.source
        return isinstance(value.owner, ConstantOp) or value in self._parameters

    @rewrite("pack.separate_arguments", "a tensor that two stages read becomes two arguments")
    def _unshared(self, op: CallOp) -> CallOp | None:
        """Returns the call with a separate argument for each stage; None if no two stages share one."""
        name = op.callee_name
        self._module.prim_count += 1
        found = unshare(self._prims[name], len(op.inputs), f"{name}_u{self._module.prim_count}")
        if found is None:
            return None
        function, repeated = found
        self._module.op.body.block.add_op(function)
        self._prims[function.sym_name.data] = function
        inputs = [*op.inputs, *(op.inputs[i] for i in repeated)]
        new = CallOp(function.sym_name.data, inputs, op.destinations, op.result_types, node_name(op))
        Rewriter.replace_op(op, new)
        return new

    def _replace(self, op: CallOp, prim: PrimView, blocking: Blocking, name: str, values: BlockedValues) -> None:
        """Replace the call by one of the PrimFunc ``name`` with cut loops, on operands in their layouts."""
        layouts: Sequence[Layout | None] = [blocking.layouts.get(a) for a in prim.function.body.block.args]
        inputs = [
            value if layout is None else values.physical(value, layout, op)
            for value, layout in zip(op.inputs, layouts, strict=False)
        ]
        outputs = layouts[len(inputs) :]
        types = [r.type if at is None else at.tensor(r.type) for r, at in zip(op.res, outputs, strict=True)]
        allocs = [tensor_alloc(ty) for ty in types]
        new = CallOp(name, inputs, [alloc.tensor for alloc in allocs], types, node_name(op))
        Rewriter.insert_op([*allocs, new], InsertPoint.before(op))
        results = [
            result if layout is None else values.plain(result, layout, cast(AnyTensor, old.type), op)
            for result, layout, old in zip(new.res, outputs, op.res, strict=True)
        ]
        destinations = [d.owner for d in op.destinations]
        sources = list(op.inputs)
        Rewriter.replace_op(op, [], results)
        for alloc in destinations:
            if isinstance(alloc, bufferization.AllocTensorOp) and alloc.tensor.first_use is None:
                Rewriter.erase_op(alloc)
        for value in new.inputs:
            if isinstance(value.owner, ConstantOp):
                self._consumed.keep(value.owner.symbol_name)
        self._consumed.drop(sources)


@rewrite("pack.unused_reorder", "packs, unpacks and views that nothing reads are removed")
def _drop_unused_reorders(block: Block) -> None:
    """Remove reorders, views and crossings that have no readers."""
    for op in reversed(operations(block)):
        if isinstance(op, UnpackOp | PackOp | ViewOp | ToVDeviceOp) and op.result.first_use is None:
            Rewriter.erase_op(op)


@rewrite("pack.concat", "a concatenation of packed tensors is packed")
def _concat(op: ConcatOp, tile: int, values: BlockedValues) -> None:
    """Concatenate channel-blocked parts directly: along pixels always, along channels if every part has only full
    blocks."""
    axis, rank = op.axis.value.data, len(shape_of(op.result.type))
    if axis < 1 or rank not in (3, 4) or any((v, tile) not in values.twins for v in op.inputs):
        return
    if vdevice_of(op.result.type).axis_separators:
        return
    if axis == 1 and any(shape_of(v.type)[1] % tile for v in op.inputs):
        return
    layout = Layout.of_channels(rank, tile)
    new = ConcatOp([values.twins[v, tile] for v in op.inputs], axis, layout.tensor(op.result.type))
    set_node_name(new, node_name(op))
    Rewriter.insert_op(new, InsertPoint.before(op))
    Rewriter.replace_op(op, [], [values.plain(new.result, layout, cast(AnyTensor, op.result.type), op)])


@rewrite("pack.view", "a view that changes unit dimensions of pixels is a view of the packed tensor")
def _view(op: ViewOp, tile: int, values: BlockedValues) -> None:
    """Make a view that only adds or removes unit dimensions among the pixels a view of the blocked twin.

    Signals of 1-D convolutions have such views.
    """
    twin = values.twins.get((op.source, tile))
    if twin is None or op.first or vdevice_of(op.result.type).axis_separators:
        return
    if has_free_rows(values.module, vdevice_of(twin.type)):
        return  # their rows are not in line
    source, result = shape_of(op.source.type), shape_of(op.result.type)
    if len(result) not in (3, 4) or source[:2] != result[:2]:
        return
    if [e for e in source[2:] if e != 1] == [e for e in result[2:] if e != 1]:
        view = ViewOp(twin, Layout.of_channels(len(result), tile).tensor(op.result.type))
        Rewriter.insert_op(view, InsertPoint.after(op))
        values.twins[op.result, tile] = view.result
