"""Where values live that several vdevices use in place, and which crossings can be views for that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.ir import Block, Operation, SSAValue

from landbridge.analysis.claims import is_view, produced
from landbridge.analysis.shared_memory import host_of, lender_of
from landbridge.analysis.union_find import UnionFind
from landbridge.ir.graph_ops import ConcatOp, ConstantOp, IfOp, ToVDeviceOp, ViewOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import VDeviceAttr, vdevice_of


def shared_homes(module: IRModule, block: Block) -> dict[SSAValue, VDeviceAttr]:
    """The place of every value that crosses as a view, or shares bytes with one that does."""
    groups: UnionFind[SSAValue] = UnionFind()
    homes: dict[SSAValue, VDeviceAttr] = {}
    for op in block.walk():
        _join_parts(groups, op)
        if isinstance(op, ToVDeviceOp) and is_view(op):
            groups.join(op.source, op.result)
            if (home := host_of(module, op) or lender_of(module, op)) is not None:
                homes[op.source] = home
    at = {groups.find(value): home for value, home in homes.items()}
    return {
        found: at[groups.find(value)]
        for value in groups.members()
        if groups.find(value) in at and (found := produced(value)) is not None
    }


def possible_views(module: IRModule, block: Block) -> list[ToVDeviceOp]:
    """The crossings that need no copy: both sides use the same memory, and all that shares bytes can live there.

    Memory of the host comes before that of a device, where either would do. What is bound by the caller, returned to
    it, a constant, or used by a branch stays where it is, so that it crosses to elsewhere as a copy.
    """
    groups: UnionFind[SSAValue] = UnionFind()
    kept = {value: vdevice_of(value.type) for value in _kept(block)}
    crossings = [op for op in block.walk() if isinstance(op, ToVDeviceOp)]
    for op in block.walk():
        _join_parts(groups, op)
    views = [op for op in crossings if host_of(module, op) is not None]
    for op in views:
        groups.join(op.source, op.result)
        kept[op.source] = cast(VDeviceAttr, host_of(module, op))
    homes: dict[SSAValue, set[VDeviceAttr]] = {}
    for value, place in kept.items():
        homes.setdefault(groups.find(value), set()).add(place)
    for op in crossings:
        lender = lender_of(module, op)
        if op in views or lender is None:
            continue
        found = {place for end in (op.source, op.result) for place in homes.get(groups.find(end), ())}
        if found <= {lender}:
            groups.join(op.source, op.result)
            homes[groups.find(op.source)] = {lender}
            views.append(op)
    return views


def _join_parts(groups: UnionFind[SSAValue], op: Operation) -> None:
    """Join what shares bytes by way of ``op``, crossings left out."""
    if isinstance(op, ViewOp):
        groups.join(op.source, op.result)
    elif isinstance(op, ConcatOp):
        for part in op.inputs:
            groups.join(part, op.result)
    elif isinstance(op, IfOp):
        for region in op.regions:
            terminator = region.block.last_op
            for inner, result in zip(() if terminator is None else terminator.operands, op.res, strict=True):
                groups.join(inner, result)


def _kept(block: Block) -> Iterator[SSAValue]:
    """The values that have a place already."""
    yield from block.args
    if block.last_op is not None:
        yield from block.last_op.operands
    for op in block.ops:
        if isinstance(op, ConstantOp):
            yield op.result
        elif isinstance(op, IfOp):
            yield op.condition
            yield from op.res
            for inner in op.walk():
                yield from inner.operands
                yield from inner.results
