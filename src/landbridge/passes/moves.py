"""Marks the PrimFuncs that only move data, with the bytes they write, for the ledger."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import func, linalg, memref
from xdsl.ir import BlockArgument

from landbridge.ir.kernel_attributes import set_moved_bytes
from landbridge.ir.length_ops import reserved
from landbridge.ir.module import IRModule
from landbridge.ir.prim_ops import PadOp
from landbridge.ir.stages import Generic, view_prim
from landbridge.ir.types import element_count, item_bytes, nbytes_of
from landbridge.passes.registry import register_pass


@register_pass("moves")
def moves(module: IRModule) -> None:
    """Mark PrimFuncs that only move data with the bytes they write, at most: a length may be the whole capacity."""
    for function in module.prims().values():
        set_moved_bytes(function, cast(int, reserved(_moved_bytes(function))))


def _moved_bytes(function: func.FuncOp) -> int:
    """Returns the bytes that ``function`` writes to its arguments if it only moves data; 0 if it computes."""
    view = view_prim(function)
    if view.has_own_order:
        return 0
    generics = {g.op: g for g in view.generics()}
    total, moved = 0, False
    for stage in view.stages:
        if isinstance(stage, linalg.ops.GenericOp):
            generic = generics[stage]
            if not _only_moves(generic):
                return 0
            moved = True
            written = [o.buffer for o in generic.outs if isinstance(o.buffer, BlockArgument)]
            total += element_count(generic.extents) * sum(item_bytes(b.type) for b in written)
        elif isinstance(stage, PadOp):
            moved = True
            if isinstance(stage.destination, BlockArgument):
                total += nbytes_of(stage.destination.type)
    return total if moved else 0


def _only_moves(generic: Generic) -> bool:
    """Returns whether the stored value was loaded: then everything else in the body can only compute addresses."""
    sources = {o.scalar for o in generic.ins}
    stored = generic.body.last_op
    return stored is not None and all(v in sources or isinstance(v.owner, memref.LoadOp) for v in stored.operands)
