"""Chooses the first vdevice, where the inputs and outputs of a model are."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.ir.graph_ops import ToVDeviceOp
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import set_node_name
from landbridge.ir.traversal import all_operations
from landbridge.ir.types import VDeviceAttr, vdevice_of


def swap_first(module: IRModule, host: int) -> None:
    """Swap vdevices 0 and ``host`` of ``module``, and place the inputs and outputs of @main on the new vdevice 0.

    All other values keep their devices: the indices in their types are swapped. A ``to_vdevice`` is inserted after each
    input that is used, and before each output whose value is on another vdevice.
    """
    vdevices = list(module.vdevices)
    vdevices[0], vdevices[host] = vdevices[host], vdevices[0]
    module.vdevices = tuple(vdevices)
    main, block = module.main, module.main.body.block
    for value in _values(main):
        number = vdevice_of(value.type).index.data
        if number in (0, host):
            Rewriter.replace_value_with_new_type(value, _on(value.type, host - number))
    for number in range(len(block.args)):
        inner = block.args[number].type
        Rewriter.replace_value_with_new_type(block.args[number], _on(inner, 0))
        argument = block.args[number]
        if block.first_op is not None and argument.first_use is not None:
            crossing = _crossing(argument, inner)
            block.insert_op_before(crossing, block.first_op)
            argument.replace_uses_with_if(crossing.result, lambda use, op=crossing: use.operation is not op)  # type: ignore[misc]
    last = block.last_op
    if isinstance(last, func.ReturnOp):
        for i, value in enumerate(last.operands):
            if vdevice_of(value.type).index.data != 0:
                crossing = _crossing(value, _on(value.type, 0))
                block.insert_op_before(crossing, last)
                last.operands[i] = crossing.result
        types = [a.type for a in block.args]
        main.properties["function_type"] = FunctionType.from_lists(types, [v.type for v in last.operands])


def _values(main: func.FuncOp) -> Iterator[SSAValue]:
    for op in all_operations(main):
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _on(ty: Attribute, index: int) -> Attribute:
    vdevice = vdevice_of(ty)
    assert isinstance(ty, TensorType)  # vdevice_of has checked it
    return TensorType(ty.element_type, ty.shape, VDeviceAttr.of(index, vdevice.scope.data, vdevice.axis_separators))


def _crossing(value: SSAValue, ty: Attribute) -> ToVDeviceOp:
    op = ToVDeviceOp(value, ty)
    set_node_name(op, "host memory")
    return op
