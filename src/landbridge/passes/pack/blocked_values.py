"""Values in physical layouts: each is reordered once, and not at all if a blocked twin exists."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import field, replace
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from landbridge.analysis.free_rows import has_free_rows
from landbridge.ir.allocations import tensor_alloc
from landbridge.ir.copy_prims import CopyPrims
from landbridge.ir.graph_ops import CallOp, ConstantOp, PackOp, ToVDeviceOp, UnpackOp, ViewOp
from landbridge.ir.module import IRModule, memory_of
from landbridge.ir.op_attributes import node_name, set_node_name
from landbridge.ir.packing import pack_array
from landbridge.ir.types import AnyTensor, VDeviceAttr, dtype_of, shape_of, tensor_type, vdevice_of
from landbridge.passes.pack.layout import Layout
from landbridge.passes.rewrites import rewrite
from landbridge.records import record

Array: TypeAlias = np.ndarray[Any, Any]


@record(frozen=True)
class BlockedValues:
    """The blocked twins of plain values that are visible in a block, by value and channels of a block, and the packed
    constants of ``module``.
    """

    module: IRModule
    copies: CopyPrims
    twins: ChainMap[tuple[SSAValue, int], SSAValue] = field(default_factory=ChainMap)
    constants: dict[tuple[str, Layout], str] = field(default_factory=dict)

    def nested(self) -> BlockedValues:
        """Returns the twins that are visible in a nested block."""
        return replace(self, twins=self.twins.new_child())

    def physical(self, value: SSAValue, layout: Layout, before: Operation) -> SSAValue:
        """Returns ``value`` in ``layout``: its blocked twin, a packed constant, a view if no element moves, or a
        pack."""
        found = (
            self._twin(value, layout)
            or self._packed_constant(value, layout, before)
            or self._packed_before_crossing(value, layout, before)
        )
        if found is not None:
            return found
        value = self._transposed(value, layout.order, before)
        location = vdevice_of(value.type)
        if has_free_rows(self.module, location):
            # In ordinary memory: pixels of an image cannot be written lane by lane, as padding is.
            flat = VDeviceAttr.of(location.index.data)
            reordered = _insert(PackOp(value, layout.axes, layout.tiles, flat), before)
        elif _is_view(layout, value.type):
            reordered = _insert(ViewOp(value, layout.tensor(value.type)), before)
        else:
            reordered = _insert(PackOp(value, layout.axes, layout.tiles), before)
        if layout.is_of_channels:
            self.twins[value, layout.tiles[0]] = reordered
        return reordered

    def plain(self, value: SSAValue, layout: Layout, ty: AnyTensor, before: Operation) -> SSAValue:
        """Returns the plain form, of type ``ty``, of ``value`` in ``layout``, and record ``value`` as its twin.

        If ``value`` lies in rows, the plain form lies in ordinary memory.
        """
        in_rows = has_free_rows(self.module, vdevice_of(ty))
        if in_rows:
            ty = tensor_type(shape_of(ty), dtype_of(ty), VDeviceAttr.of(vdevice_of(ty).index.data))
        view = not in_rows and _is_view(layout, ty)
        op = ViewOp(value, ty) if view else UnpackOp(value, layout.axes, layout.tiles, ty)
        reordered = _insert(op, before)
        self.twins[reordered, layout.tiles[0]] = value
        return reordered

    @rewrite("pack.twin", "a packed tensor is read where it is unpacked and packed again")
    def _twin(self, value: SSAValue, layout: Layout) -> SSAValue | None:
        """Returns the blocked form of ``value`` that exists already; None if there is none."""
        return self.twins.get((value, layout.tiles[0])) if layout.is_of_channels else None

    @rewrite("pack.constant", "weights are packed at compile time")
    def _packed_constant(self, value: SSAValue, layout: Layout, before: Operation) -> SSAValue | None:
        """Returns a constant that is packed now, not by runs; None if ``value`` is no constant."""
        if not isinstance(value.owner, ConstantOp):
            return None
        symbol = value.owner.symbol_name
        key = (symbol, layout)
        if key not in self.constants:
            self.constants[key] = self.module.add_constant(self._packed(self.module.constants[symbol], layout), symbol)
        return _insert(ConstantOp(self.constants[key], layout.tensor(value.type)), before)

    @rewrite("pack.crossing", "a tensor crosses to memory of rows in its packed form")
    def _packed_before_crossing(self, value: SSAValue, layout: Layout, before: Operation) -> SSAValue | None:
        """Returns what crosses to memory of rows in its packed form alone; None if ``value`` is no such crossing."""
        if not isinstance(value.owner, ToVDeviceOp) or not has_free_rows(self.module, vdevice_of(value.type)):
            return None
        crossing = ToVDeviceOp(self.physical(value.owner.source, layout, before), layout.tensor(value.type))
        set_node_name(crossing, node_name(value.owner))
        moved = _insert(crossing, before)
        if layout.is_of_channels:
            self.twins[value, layout.tiles[0]] = moved
        return moved

    def _packed(self, array: Array, layout: Layout) -> Array:
        """Returns ``array`` in ``layout``, as another program of the model has it already if one does."""
        packs = self.module.packs
        key = memory_of(array), layout
        if packs is not None and key in packs:
            return packs[key][1]
        packed = pack_array(array.transpose(layout.order), layout.axes, layout.tiles)
        if packs is not None:
            packs[key] = array, packed
        return packed

    def _transposed(self, value: SSAValue, order: tuple[int, ...], before: Operation) -> SSAValue:
        if order == tuple(range(len(order))):
            return value
        shape, dtype, vdevice = shape_of(value.type), dtype_of(value.type), vdevice_of(value.type)
        alloc = tensor_alloc(tensor_type([shape[i] for i in order], dtype, vdevice))
        name = self.copies.transpose(shape, order, dtype, vdevice)
        call = CallOp(name, [value], [alloc.tensor], [alloc.tensor.type], "transpose")
        Rewriter.insert_op([alloc, call], InsertPoint.before(before))
        return call.res[0]


@rewrite("pack.view_for_reorder", "a reorder that moves no element becomes a view")
def _is_view(layout: Layout, ty: Attribute) -> bool:
    """Returns whether ``layout`` moves no element of a tensor of type ``ty``: a view then does for a reorder."""
    return layout.moves_nothing(shape_of(ty))


def _insert(op: Operation, before: Operation) -> SSAValue:
    Rewriter.insert_op(op, InsertPoint.before(before))
    return op.results[0]
