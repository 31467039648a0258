"""Rewrites allocations to tensors in a storage."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Block
from xdsl.rewriter import Rewriter

from landbridge.analysis.scopes import Alloc
from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.ir.memory_ops import AllocStorageOp, AllocTensorOp
from landbridge.ir.op_attributes import set_plan_quality
from landbridge.ir.types import VDeviceAttr
from landbridge.memory_kind import MemoryKind
from landbridge.passes.plan.storages import Solution


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
