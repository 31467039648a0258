"""Where produced values live that several vdevices use in place."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from landbridge.analysis.claims import is_view, produced
from landbridge.analysis.shared_memory import host_of
from landbridge.analysis.union_find import UnionFind
from landbridge.ir.graph_ops import ConcatOp, IfOp, ToVDeviceOp, ViewOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr


def shared_homes(module: IRModule, block: Block) -> dict[SSAValue, VDeviceAttr]:
    """The place in memory of the host of every value that crosses as a view, or shares bytes with one that does."""
    groups: UnionFind[SSAValue] = UnionFind()
    homes: dict[SSAValue, VDeviceAttr] = {}
    for op in block.walk():
        if isinstance(op, ViewOp | ToVDeviceOp) and is_view(op):
            groups.join(op.source, op.result)
            if isinstance(op, ToVDeviceOp) and (home := host_of(module, op)) is not None:
                homes[op.source] = home
        elif isinstance(op, ConcatOp):
            for part in op.inputs:
                groups.join(part, op.result)
        elif isinstance(op, IfOp):
            for region in op.regions:
                terminator = region.block.last_op
                for inner, result in zip(() if terminator is None else terminator.operands, op.res, strict=True):
                    groups.join(inner, result)
    at = {groups.find(value): home for value, home in homes.items()}
    return {
        found: at[groups.find(value)]
        for value in groups.members()
        if groups.find(value) in at and (found := produced(value)) is not None
    }
