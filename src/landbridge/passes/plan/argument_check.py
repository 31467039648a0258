"""Checks a plan for memory where a launch takes no two arguments of one space of which it writes one."""

from __future__ import annotations

from xdsl.ir import SSAValue

from landbridge.analysis.lifetimes import root
from landbridge.analysis.offsets import has_one_tensor_per_space
from landbridge.errors import PlacementError
from landbridge.ir.graph_ops import CallOp
from landbridge.ir.memory_ops import AllocTensorOp
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import declared_vdevice, node_name
from landbridge.ir.traversal import operations_of


def check_arguments(module: IRModule) -> None:
    """Raises PlacementError for a kernel that writes a space of which it takes another argument, where that is not
    legal.
    """
    for op in operations_of(module.main, CallOp):
        vdevice = declared_vdevice(op)
        if vdevice is None or not has_one_tensor_per_space(module, vdevice):
            continue
        written = [_space(value) for value in op.destinations]
        taken = [*map(_space, op.inputs), *written]
        if any(taken.count(space) > 1 for space in written):
            raise PlacementError(
                f"kernel {op.callee_name!r} of node {node_name(op)!r} takes one space of "
                f"{module.vdevices[vdevice.index.data]} twice and writes it, which its memory does not allow; give IR "
                "from before the pass 'inplace', or place the node on another device"
            )


def _space(value: SSAValue) -> SSAValue:
    """Returns the storage, constant, input or output that ``value`` lies in."""
    buffer = root(value)
    return buffer.owner.storage if isinstance(buffer.owner, AllocTensorOp) else buffer
