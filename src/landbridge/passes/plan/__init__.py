"""Memory planning: every buffer of @main gets a location in a storage of its vdevice and scope.

A flat scope gets one storage, with buffers at byte offsets; where a launch takes no space twice, a storage holds one
buffer at a time. A scope of rows gets one storage too, in which buffers take whole rows. In scopes of more dimensions
an object is reused as a whole, by buffers of one type.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.ir import Attribute, Block
from xdsl.rewriter import Rewriter

from landbridge.analysis.scopes import Alloc, scopes_of
from landbridge.errors import PlacementError, PlanError
from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.ir.memory_ops import AllocStorageOp, AllocTensorOp
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import set_plan_quality
from landbridge.ir.traversal import operations
from landbridge.ir.types import VDeviceAttr
from landbridge.memory_kind import MemoryKind
from landbridge.passes.plan.argument_check import check_arguments
from landbridge.passes.plan.solution import Solution
from landbridge.passes.plan.storages import solve
from landbridge.passes.registry import register_pass
from landbridge.passes.rewrites import rewrite


@register_pass("plan")
def plan(module: IRModule) -> None:
    """Replace allocations by tensors in storages, which belong to one vdevice and one scope each.

    Raises PlacementError if a scope cannot hold what was placed in it.
    """
    block = module.main.body.block
    _drop_unused_buffers(block)
    for scope in scopes_of(module):
        try:
            solved = list(solve(scope))
        except PlanError as error:
            raise PlacementError(
                f"scope {scope.kind.scope!r} of vdevice {scope.vdevice!r} is too small: {error}{scope.taken()}"
            ) from error
        for allocs, solution in solved:
            put_in_storage(block, scope.kind, allocs, solution)
    check_arguments(module)


@rewrite("plan.unused_buffer", "a buffer that nothing uses is removed")
def _drop_unused_buffers(block: Block) -> None:
    """Remove buffers that nothing uses."""
    for op in operations(block):
        if isinstance(op, memref.AllocOp) and op.memref.first_use is None:
            Rewriter.erase_op(op)


def put_in_storage(block: Block, kind: MemoryKind, allocs: Sequence[Alloc], solution: Solution) -> None:
    """Replace ``allocs``, of one scope, by tensors in one storage at the head of ``block``."""
    first = block.first_op
    if first is None:
        return
    vdevice = VDeviceAttr.of(allocs[0].placement.index.data, kind.scope)
    # A device with its own addresses counts a tensor's first byte by them, not from the start of the storage.
    alignment = max(STORAGE_ALIGNMENT, kind.alignment, kind.offset_alignment)
    storage = AllocStorageOp(solution.nbytes, alignment, vdevice, solution.shape, solution.dtype)
    set_plan_quality(storage, solution.lower_bound, solution.proved_optimal)
    block.insert_op_before(storage, first)
    for alloc, offset in zip(allocs, solution.offsets, strict=True):
        ty: Attribute = alloc.op.memref.type
        tensor = AllocTensorOp(storage.result, offset, ty, alloc.name)
        block.insert_op_before(tensor, alloc.op)
        alloc.op.memref.replace_all_uses_with(tensor.result)
        Rewriter.erase_op(alloc.op)
