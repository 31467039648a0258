"""Values in physical layouts: each is reordered once, and not at all if a blocked twin exists."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import field, replace

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from landbridge.ir.allocations import tensor_alloc
from landbridge.ir.copy_prims import CopyPrims
from landbridge.ir.graph_ops import CallOp, ConstantOp, PackOp, UnpackOp, ViewOp
from landbridge.ir.module import IRModule
from landbridge.ir.packing import pack_array
from landbridge.ir.types import AnyTensor, dtype_of, shape_of, tensor_type, vdevice_of
from landbridge.passes.pack.layout import Layout
from landbridge.records import record


@record(frozen=True)
class BlockedValues:
    """The blocked twins of plain values that are visible in a block, and the packed constants of ``module``."""

    module: IRModule
    copies: CopyPrims
    twins: ChainMap[SSAValue, SSAValue] = field(default_factory=ChainMap)
    constants: dict[tuple[str, Layout], str] = field(default_factory=dict)

    def nested(self) -> BlockedValues:
        """Returns the twins that are visible in a nested block."""
        return replace(self, twins=self.twins.new_child())

    def physical(self, value: SSAValue, layout: Layout, before: Operation) -> SSAValue:
        """Returns ``value`` in ``layout``: its blocked twin, a packed constant, a view if no element moves, or a
        pack."""
        if layout.is_of_channels and value in self.twins:
            return self.twins[value]
        if isinstance(value.owner, ConstantOp):
            symbol = self._packed_constant(value.owner.symbol_name, layout)
            return _insert(ConstantOp(symbol, layout.tensor(value.type)), before)
        value = self._transposed(value, layout.order, before)
        if layout.moves_nothing(shape_of(value.type)):
            reordered = _insert(ViewOp(value, layout.tensor(value.type)), before)
        else:
            reordered = _insert(PackOp(value, layout.axes, layout.tiles), before)
        if layout.is_of_channels:
            self.twins[value] = reordered
        return reordered

    def plain(self, value: SSAValue, layout: Layout, ty: AnyTensor, before: Operation) -> SSAValue:
        """Returns the plain form, of type ``ty``, of ``value`` in ``layout``, and record ``value`` as its twin."""
        view = layout.moves_nothing(shape_of(ty))
        op = ViewOp(value, ty) if view else UnpackOp(value, layout.axes, layout.tiles, ty)
        reordered = _insert(op, before)
        self.twins[reordered] = value
        return reordered

    def _packed_constant(self, symbol: str, layout: Layout) -> str:
        key = (symbol, layout)
        if key not in self.constants:
            array = self.module.constants[symbol].transpose(layout.order)
            self.constants[key] = self.module.add_constant(pack_array(array, layout.axes, layout.tiles), symbol)
        return self.constants[key]

    def _transposed(self, value: SSAValue, order: tuple[int, ...], before: Operation) -> SSAValue:
        if order == tuple(range(len(order))):
            return value
        shape, dtype, vdevice = shape_of(value.type), dtype_of(value.type), vdevice_of(value.type)
        alloc = tensor_alloc(tensor_type([shape[i] for i in order], dtype, vdevice))
        name = self.copies.transpose(shape, order, dtype, vdevice)
        call = CallOp(name, [value], [alloc.tensor], [alloc.tensor.type], "transpose")
        Rewriter.insert_op([alloc, call], InsertPoint.before(before))
        return call.res[0]


def _insert(op: Operation, before: Operation) -> SSAValue:
    Rewriter.insert_op(op, InsertPoint.before(before))
    return op.results[0]
