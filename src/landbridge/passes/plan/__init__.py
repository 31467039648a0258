"""Memory planning: every buffer of @main gets a location in a storage of its vdevice and scope.

A flat scope gets one storage, with buffers at byte offsets. A scope of rows gets one storage too, in which buffers take
whole rows. In scopes of more dimensions an object is reused as a whole, by buffers of one type.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.rewriter import Rewriter

from landbridge.analysis.scopes import scopes_of
from landbridge.errors import PlacementError, PlanError
from landbridge.ir.module import IRModule
from landbridge.passes.plan.rewrite import put_in_storage
from landbridge.passes.plan.storages import solve
from landbridge.passes.registry import register_pass


@register_pass("plan")
def plan(module: IRModule) -> None:
    """Replace allocations by tensors in storages, which belong to one vdevice and one scope each.

    Raises PlacementError if a scope cannot hold what was placed in it.
    """
    block = module.main.body.block
    for op in list(block.ops):
        if isinstance(op, memref.AllocOp) and op.memref.first_use is None:
            Rewriter.erase_op(op)
    for scope in scopes_of(module):
        try:
            solved = list(solve(scope))
        except PlanError as error:
            raise PlacementError(
                f"scope {scope.kind.scope!r} of vdevice {scope.vdevice!r} is too small: {error}{scope.taken()}"
            ) from error
        for allocs, solution in solved:
            put_in_storage(block, scope.kind, allocs, solution)
