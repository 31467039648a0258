"""Scratch: temporaries of a kernel that may not fit a stack get planned memory.

Such a kernel takes one more operand for each of its temporaries, the last ones, and ``lb.scratch`` says how many
arguments precede them. Their contents are dead after the call, so that the plan reuses their bytes.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import SSAValue

from landbridge.ir.allocations import buffer_alloc
from landbridge.ir.graph_ops import CallOp
from landbridge.ir.kernel_attributes import first_scratch, set_first_scratch, target_number
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import declared_vdevice, node_name, place_on, set_node_name
from landbridge.ir.stages import view_prim
from landbridge.ir.traversal import operations_of
from landbridge.ir.types import AnyMemRef, VDeviceAttr
from landbridge.passes.lower.scratch import scratch_types
from landbridge.passes.registry import register_pass


@register_pass("scratch")
def scratch(module: IRModule) -> None:
    """Give kernels operands for temporaries that may not fit a stack."""
    needed: dict[str, list[AnyMemRef]] = {}
    for name, prim in module.prims().items():
        if module.targets[target_number(prim)].form != "vectors" or first_scratch(prim) is not None:
            continue
        if types := scratch_types(view_prim(prim)):
            needed[name] = types
            _take(prim, types)
    block = module.main.body.block
    for call in [op for op in operations_of(module.main, CallOp) if op.callee_name in needed]:
        given: list[SSAValue] = []
        for ty in needed[call.callee_name]:
            alloc = buffer_alloc(ty)
            caller = declared_vdevice(call)
            place_on(alloc, VDeviceAttr.of(0 if caller is None else caller.index.data))
            set_node_name(alloc, f"{node_name(call)} scratch".lstrip())
            first = block.first_op
            assert first is not None  # the call, or an operation around it
            block.insert_op_before(alloc, first)
            given.append(alloc.memref)
        _give(call, given)


def _take(prim: func.FuncOp, types: list[AnyMemRef]) -> None:
    block = prim.body.block
    set_first_scratch(prim, len(block.args))
    for ty in types:
        block.insert_arg(ty, len(block.args))
    prim.properties["function_type"] = FunctionType.from_lists([a.type for a in block.args], [])


def _give(call: CallOp, scratch: list[SSAValue]) -> None:
    attributes = {k: v for k, v in call.attributes.items() if k != "operandSegmentSizes"}
    block = call.parent
    assert block is not None
    given = CallOp.build(
        operands=[list(call.inputs), [*call.destinations, *scratch]], result_types=[[]], attributes=attributes
    )
    block.insert_op_before(given, call)
    block.erase_op(call)
