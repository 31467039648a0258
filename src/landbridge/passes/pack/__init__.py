"""Choose physical layouts: convolutions run on channel blocks, matrix multiplications on packed weights.

Activations are blocked along axis 1 (``1x64x56x56`` as ``1x4x56x56x16``, the tile being the target's vector),
weights so that one vector holds consecutive output channels. Element-wise operations, pooling and
concatenation follow their operands, so that ``lb.pack`` and ``lb.unpack`` remain only where layouts really meet.
Graph inputs and outputs stay plain.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping, Sequence

from xdsl.dialects import bufferization
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.analysis.axis_classes import AxisClass, axis_classes, class_of
from landbridge.ir.copy_prims import CopyPrims
from landbridge.ir.graph_ops import (
    CallOp,
    ConcatOp,
    ConstantOp,
    IfOp,
    PackOp,
    ToVDeviceOp,
    UnpackOp,
    ViewOp,
    packed_shape,
)
from landbridge.ir.module import IRModule, parameters
from landbridge.ir.stages import PrimView, view_prim
from landbridge.ir.types import dtype_of, shape_of, tensor_type, vdevice_of
from landbridge.passes.fold import pack_array
from landbridge.passes.lower.nest import widest_bytes
from landbridge.passes.pack.split import Layout, layout_of, split_prim
from landbridge.passes.pack.unshare import unshare
from landbridge.passes.registry import register_pass
from landbridge.target import Target
from landbridge.target.grid import grid_limits


@register_pass("pack")
def pack(module: IRModule) -> None:
    """Give convolutions and matrix multiplications blocked layouts, and let their neighbours follow."""
    _Packer(module).block(module.main.body.block, ChainMap())


def _lanes(target: Target) -> int:
    """How many channels stand side by side in blocked layouts of ``target``; 1 where plain ones serve it better.

    Work-items of a GPU read neighbours along the pixels of a plain layout together; a CPU's vectors need blocks.
    """
    limits = grid_limits(target)
    return 1 if limits is not None and not limits.core_vectors else max(2, target.vector_bits // 32)


class _Packer:
    def __init__(self, module: IRModule) -> None:
        self._module = module
        self._tiles = [_lanes(module.target_of(i)) for i in range(len(module.vdevices))]
        self._tile = max(self._tiles)
        self._prims = module.prims()
        self._parameters = parameters(module)
        self._copies = CopyPrims(module)
        self._constants: dict[tuple[str, Layout], str] = {}
        self._views: dict[str, tuple[PrimView, list[AxisClass]]] = {}

    def block(self, block: Block, blocked: ChainMap[SSAValue, SSAValue]) -> None:
        """Rewrite the operations of ``block``; ``blocked`` maps plain values to their blocked twins."""
        for op in list(block.ops):
            if isinstance(op, IfOp):
                self.block(op.then_region.block, blocked.new_child())
                self.block(op.else_region.block, blocked.new_child())
            elif isinstance(op, ConcatOp | CallOp):
                self._tile = self._tiles[vdevice_of(op.results[0].type).index.data]
                if self._tile < 2:
                    continue
                if isinstance(op, ConcatOp):
                    self._concat(op, blocked)
                else:
                    self._call(op, blocked)
        for op in reversed(list(block.ops)):
            if isinstance(op, UnpackOp | PackOp | ViewOp) and not op.result.uses:
                Rewriter.erase_op(op)

    # ---- which classes of a call are cut ----------------------------------------------------------------------

    def _call(self, op: CallOp, blocked: MutableMapping[SSAValue, SSAValue]) -> None:
        if any(vdevice_of(v.type).axis_separators for v in (*op.inputs, *op.res)):
            return  # the separators were asked for these axes
        name = op.callee.root_reference.data
        if name not in self._views:
            view = view_prim(self._prims[name])
            self._views[name] = (view, axis_classes(view))
        prim, classes = self._views[name]
        arguments = prim.function.body.block.args
        inputs = list(zip(op.inputs, arguments, strict=False))
        outputs = arguments[len(op.inputs) :]
        weights = self._weights(op, prim)
        first = next(prim.generics(), None)
        if first is None:
            return
        if weights is not None and len(shape_of(outputs[0].type)) == 4 and first.reduces:
            self._convolution(op, blocked, prim, classes, weights)
        elif weights is not None and first.reduces and len(shape_of(weights.type)) == 2:
            self._matrix(op, prim, classes, weights)
        else:
            self._follow(op, blocked, prim, classes, inputs, list(outputs))

    def _weights(self, op: CallOp, prim: PrimView) -> SSAValue | None:
        """The argument that is the weight of the call's leading contraction."""
        first = next(prim.generics(), None)
        if first is None or not first.reduces or len(first.ins) != 2:
            return None
        weights = self._weight_arguments(op, prim)
        found = [o.buffer for o in first.ins if o.buffer in weights]
        return found[0] if len(found) == 1 else None

    def _weight_arguments(self, op: CallOp, prim: PrimView) -> set[SSAValue]:
        """The arguments of the PrimFunc that are given constants or parameters."""
        return {a for v, a in zip(op.inputs, prim.function.body.block.args, strict=False) if self._is_weight(v)}

    def _is_weight(self, value: SSAValue) -> bool:
        """Whether ``value`` is a constant or a parameter, which is packed once for each value it gets."""
        while isinstance(value.owner, ToVDeviceOp):
            value = value.owner.source
        return isinstance(value.owner, ConstantOp) or value in self._parameters

    def _convolution(
        self,
        op: CallOp,
        blocked: MutableMapping[SSAValue, SSAValue],
        prim: PrimView,
        classes: list[AxisClass],
        weights: SSAValue,
    ) -> None:
        arguments = prim.function.body.block.args
        lanes = self._output_class(arguments[len(op.inputs) :], classes)
        if lanes is not None and lanes.reduces:
            self._unshared(op, blocked)
            return
        if lanes is not None and lanes.extent < self._tile // 2:
            lanes = None
        cut = [lanes] if lanes is not None else []
        channel = next(
            (
                c
                for c in classes
                if c.reduces
                and not c.fixed
                and c.axis_of(weights) is not None
                and self._data_axis(op, c, arguments) == 1
            ),
            None,
        )
        if channel is not None:
            data = next(
                v
                for v, a in zip(op.inputs, arguments, strict=False)
                if a is not weights and channel.axis_of(a) is not None
            )
            if data in blocked or (lanes is not None and channel.extent >= self._tile):
                cut = [channel, *cut]
        if cut:
            self._rewrite(op, blocked, prim, cut, lanes)

    def _unshared(self, op: CallOp, blocked: MutableMapping[SSAValue, SSAValue]) -> None:
        """Try again with an argument of its own for each stage."""
        name = op.callee.root_reference.data
        self._module.prim_count += 1
        found = unshare(self._prims[name], len(op.inputs), f"{name}_u{self._module.prim_count}")
        block = op.parent
        if found is None or block is None:
            return
        function, repeated = found
        self._module.op.body.block.add_op(function)
        self._prims[function.sym_name.data] = function
        inputs = [*op.inputs, *(op.inputs[i] for i in repeated)]
        node = op.node.data if op.node is not None else ""
        new = CallOp(function.sym_name.data, inputs, list(op.destinations), [r.type for r in op.res], node)
        block.insert_op_before(new, op)
        for old, result in zip(op.res, new.res, strict=True):
            old.replace_all_uses_with(result)
        Rewriter.erase_op(op)
        self._call(new, blocked)

    def _data_axis(self, op: CallOp, c: AxisClass, arguments: tuple[SSAValue, ...]) -> int | None:
        """The axis that class ``c`` has in the one operand that is no weight."""
        axes = [
            axis
            for v, a in zip(op.inputs, arguments, strict=False)
            if not self._is_weight(v) and (axis := c.axis_of(a)) is not None
        ]
        return axes[0] if len(axes) == 1 else None

    def _matrix(self, op: CallOp, prim: PrimView, classes: list[AxisClass], weights: SSAValue) -> None:
        """Pack the weights of a matrix multiplication in column panels; everything else stays plain."""
        columns = next((c for c in classes if not c.fixed and not c.reduces and c.axis_of(weights) is not None), None)
        # A panel is one vector of the widest element computed with: a plain result has no room past its last column.
        self._tile = self._tile * 4 // max(4, *(widest_bytes(g.body) for g in prim.generics()))
        if columns is None or columns.extent < self._tile or self._tile < 2:
            return
        layout = layout_of(weights, [columns], self._tile, first=columns)
        assert layout is not None
        self._replace_call(op, {}, prim, [columns], {weights: layout})

    def _follow(
        self,
        op: CallOp,
        blocked: MutableMapping[SSAValue, SSAValue],
        prim: PrimView,
        classes: list[AxisClass],
        inputs: Sequence[tuple[SSAValue, SSAValue]],
        outputs: list[SSAValue],
    ) -> None:
        """Stay in the blocked layout of an operand when the channel is a parallel loop of every stage."""
        lanes = self._output_class(tuple(outputs), classes)
        if lanes is None or lanes.reduces:
            return
        if any(v in blocked and lanes.axis_of(a) == 1 for v, a in inputs):
            self._rewrite(op, blocked, prim, [lanes], lanes)

    @staticmethod
    def _output_class(outputs: tuple[SSAValue, ...] | list[SSAValue], classes: list[AxisClass]) -> AxisClass | None:
        """The class of axis 1 of every output, when all are rank 4 and one class has them all."""
        if any(len(shape_of(o.type)) != 4 for o in outputs):
            return None
        found = {id(c): c for o in outputs if (c := class_of(classes, o, 1)) is not None}
        complete = len(found) == 1 and all(class_of(classes, o, 1) is not None for o in outputs)
        return next(iter(found.values())) if complete else None

    # ---- rewriting --------------------------------------------------------------------------------------------

    def _rewrite(
        self,
        op: CallOp,
        blocked: MutableMapping[SSAValue, SSAValue],
        prim: PrimView,
        cut: list[AxisClass],
        lanes: AxisClass | None,
    ) -> None:
        weights = self._weight_arguments(op, prim)
        layouts: dict[SSAValue, Layout] = {}
        for buffer in (*prim.function.body.block.args, *prim.temporaries):
            layout = layout_of(buffer, cut, self._tile, first=lanes if buffer in weights else None)
            if layout is not None:
                layouts[buffer] = layout
        self._replace_call(op, blocked, prim, cut, layouts)

    def _replace_call(
        self,
        op: CallOp,
        blocked: MutableMapping[SSAValue, SSAValue],
        prim: PrimView,
        cut: list[AxisClass],
        layouts: dict[SSAValue, Layout],
    ) -> None:
        module, block = self._module, op.parent
        assert block is not None
        module.prim_count += 1
        name = f"{prim.function.sym_name.data}_p{module.prim_count}"
        module.op.body.block.add_op(split_prim(prim, name, cut, self._tile, layouts))
        arguments = prim.function.body.block.args
        inputs = [
            self._physical(v, layouts[a], blocked, op) if a in layouts else v
            for v, a in zip(op.inputs, arguments, strict=False)
        ]
        destinations, types = [], []
        for old, a in zip(op.res, arguments[len(op.inputs) :], strict=True):
            ty = old.type
            layout = layouts.get(a)
            if layout is not None:
                shape = packed_shape(shape_of(ty), layout.axes, layout.tiles)
                ty = tensor_type(shape, dtype_of(ty), vdevice_of(ty))
            alloc = bufferization.AllocTensorOp(ty)
            block.insert_op_before(alloc, op)
            destinations.append(alloc.tensor)
            types.append(ty)
        node = op.node.data if op.node is not None else ""
        new = CallOp(name, inputs, destinations, types, node)
        block.insert_op_before(new, op)
        for old, result, a in zip(op.res, new.res, arguments[len(op.inputs) :], strict=True):
            if a in layouts:
                plain = self._unpacked(result, layouts[a], old, op)
                blocked[plain] = result
                old.replace_all_uses_with(plain)
            else:
                old.replace_all_uses_with(result)
        old_destinations = list(op.destinations)
        Rewriter.erase_op(op)
        for d in old_destinations:
            if isinstance(d.owner, bufferization.AllocTensorOp) and not d.uses:
                Rewriter.erase_op(d.owner)

    def _physical(
        self, value: SSAValue, layout: Layout, blocked: MutableMapping[SSAValue, SSAValue], before: Operation
    ) -> SSAValue:
        """``value`` in ``layout``: its blocked twin, a packed constant, a view where no element moves, or a pack."""
        if layout == _channels(len(shape_of(value.type)), self._tile) and value in blocked:
            return blocked[value]
        block = before.parent
        assert block is not None
        symbol = self._symbol(value)
        new: ConstantOp | ViewOp | PackOp
        if symbol:
            key = (symbol, layout)
            if key not in self._constants:
                array = self._module.constants[symbol].transpose(layout.order)
                packed = pack_array(array, layout.axes, layout.tiles)
                self._constants[key] = self._module.add_constant(packed, symbol)
            found = self._constants[key]
            shape = self._module.constants[found].shape
            new = ConstantOp(found, tensor_type(shape, dtype_of(value.type), vdevice_of(value.type)))
        else:
            value = self._transposed(value, layout.order, before)
            new = PackOp(value, layout.axes, layout.tiles)
            if _only_view(shape_of(value.type), layout):
                new = ViewOp(value, new.result.type)
        block.insert_op_before(new, before)
        if not symbol and layout == _channels(len(shape_of(value.type)), self._tile):
            blocked[value] = new.result
        return new.result

    def _transposed(self, value: SSAValue, order: tuple[int, ...], before: Operation) -> SSAValue:
        if order == tuple(range(len(order))):
            return value
        block, shape, dtype, place = before.parent, shape_of(value.type), dtype_of(value.type), vdevice_of(value.type)
        assert block is not None
        alloc = bufferization.AllocTensorOp(tensor_type([shape[i] for i in order], dtype, place))
        name = self._copies.transpose(shape, order, dtype, place)
        call = CallOp(name, [value], [alloc.tensor], [alloc.tensor.type], "transpose")
        block.insert_op_before(alloc, before)
        block.insert_op_before(call, before)
        return call.res[0]

    def _unpacked(self, result: SSAValue, layout: Layout, old: SSAValue, before: Operation) -> SSAValue:
        block = before.parent
        assert block is not None
        ty = old.type
        new: ViewOp | UnpackOp
        if _only_view(shape_of(ty), layout):
            new = ViewOp(result, ty)
        else:
            new = UnpackOp(result, layout.axes, layout.tiles, ty)  # type: ignore[arg-type]
        block.insert_op_before(new, before)
        return new.result

    def _concat(self, op: ConcatOp, blocked: MutableMapping[SSAValue, SSAValue]) -> None:
        """Channel blocks are concatenated as they are when every part is a whole number of them."""
        if op.axis.value.data != 1 or any(v not in blocked or shape_of(v.type)[1] % self._tile for v in op.inputs):
            return
        layout = _channels(4, self._tile)
        block = op.parent
        assert block is not None
        ty = op.result.type
        shape = packed_shape(shape_of(ty), layout.axes, layout.tiles)
        new = ConcatOp([blocked[v] for v in op.inputs], 1, tensor_type(shape, dtype_of(ty), vdevice_of(ty)))
        block.insert_op_before(new, op)
        plain = self._unpacked(new.result, layout, op.result, op)
        blocked[plain] = new.result
        op.result.replace_all_uses_with(plain)
        Rewriter.erase_op(op)

    @staticmethod
    def _symbol(value: SSAValue) -> str | None:
        owner = value.owner
        return owner.symbol.root_reference.data if isinstance(owner, ConstantOp) else None


def _channels(rank: int, tile: int) -> Layout:
    """The layout of blocked activations."""
    return Layout(tuple(range(rank)), (1,), (tile,))


def _only_view(shape: tuple[int, ...], layout: Layout) -> bool:
    """Whether blocking axis 1 moves no element: nothing but ones behind it, and whole tiles."""
    return (
        layout.axes == (1,)
        and layout.order == tuple(range(len(shape)))
        and all(e == 1 for e in shape[2:])
        and shape[1] % layout.tiles[0] == 0
    )
