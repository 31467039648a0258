"""Assigns to each PrimFunc the target that it is compiled for."""

from __future__ import annotations

from landbridge.ir.graph_ops import CallOp
from landbridge.ir.kernel_attributes import set_target_number
from landbridge.ir.module import IRModule
from landbridge.ir.traversal import operations_of
from landbridge.ir.types import vdevice_of
from landbridge.passes.registry import register_pass


@register_pass("assign_targets")
def assign_targets(module: IRModule) -> None:
    """Set the target of each PrimFunc to that of its callers' vdevice; one that serves two targets is cloned."""
    prims = module.prims()
    placed: dict[tuple[str, int], str] = {}
    served: set[str] = set()
    for op in operations_of(module.main, CallOp):
        callee = op.callee_name
        target = module.vdevices[vdevice_of(op.destinations[0].type).index.data].target
        name = placed.get((callee, target))
        if name is None:
            function = prims[callee]
            if callee in served:
                function = module.clone_prim(function, f"{callee}_t{target}")
            served.add(callee)
            set_target_number(function, target)
            name = placed[callee, target] = function.sym_name.data
        if name != callee:
            op.callee_name = name
