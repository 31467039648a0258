"""Placement of values that several vdevices use in place, and which crossings are views because of that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.ir import Block, Operation, SSAValue

from landbridge.analysis.claims import is_view, produced
from landbridge.analysis.shared_memory import host_of, is_slow_in_place, lender_of, why_copied
from landbridge.analysis.union_find import UnionFind
from landbridge.ir.graph_ops import ConcatOp, ConstantOp, IfOp, LoopOp, ToVDeviceOp, ViewOp, YieldOp
from landbridge.ir.module import IRModule
from landbridge.ir.traversal import operations
from landbridge.ir.types import VDeviceAttr, vdevice_of
from landbridge.records import record


def shared_placements(module: IRModule, block: Block) -> dict[SSAValue, VDeviceAttr]:
    """Returns the placement of every value that crosses as a view, or shares bytes with one that does."""
    groups: UnionFind[SSAValue] = UnionFind()
    placements: dict[SSAValue, VDeviceAttr] = {}
    for op in block.walk():
        _join_parts(groups, op)
        if isinstance(op, ToVDeviceOp) and is_view(op):
            groups.join(op.source, op.result)
            if (placement := host_of(module, op) or lender_of(module, op)) is not None:
                placements[op.source] = placement
    at = {groups.find(value): placement for value, placement in placements.items()}
    return {
        found: at[groups.find(value)]
        for value in groups.members()
        if groups.find(value) in at and (found := produced(value)) is not None
    }


@record(frozen=True)
class Crossing:
    """The decision on a crossing: whether it can be a view, and ``why``."""

    is_view: bool
    why: str


def decide_crossings(module: IRModule, block: Block) -> dict[ToVDeviceOp, Crossing]:
    """Decide all crossings; one needs no copy if both sides can use the same memory and all that shares its bytes can
    too.

    Host memory is preferred over that of a device. Values that the caller binds, outputs, constants and values that a
    branch uses do not move, so that they cross to another memory as a copy.
    """
    groups: UnionFind[SSAValue] = UnionFind()
    fixed = {value: (vdevice_of(value.type), subject) for value, subject in _retained(block)}
    crossings = [op for op in block.walk() if isinstance(op, ToVDeviceOp)]
    for op in block.walk():
        _join_parts(groups, op)
    decided: dict[ToVDeviceOp, Crossing] = {}
    for op in crossings:
        if (host := host_of(module, op)) is not None:
            groups.join(op.source, op.result)
            fixed[op.source] = host, "shared with another device"
            decided[op] = Crossing(True, "both sides use memory of the host")
    placements: dict[SSAValue, dict[VDeviceAttr, str]] = {}
    for value, (location, subject) in fixed.items():
        placements.setdefault(groups.find(value), {}).setdefault(location, subject)
    for op in crossings:
        if op in decided:
            continue
        lender = lender_of(module, op)
        if lender is None:
            decided[op] = Crossing(False, why_copied(module, op))
            continue
        name = module.vdevices[lender.index.data].name
        if is_slow_in_place(module, op, lender):
            decided[op] = Crossing(
                False, f"by its bandwidths, a copy costs less than the CPU's work in memory of {name}"
            )
            continue
        found = [
            placement for end in (op.source, op.result) for placement in placements.get(groups.find(end), {}).items()
        ]
        elsewhere = [subject for location, subject in found if location != lender]
        if elsewhere:
            decided[op] = Crossing(False, f"its place is on the other side: {elsewhere[0]}")
            continue
        groups.join(op.source, op.result)
        placements[groups.find(op.source)] = {lender: f"in memory of {name}"}
        decided[op] = Crossing(True, f"the CPU works in memory of {name}")
    return decided


def _join_parts(groups: UnionFind[SSAValue], op: Operation) -> None:
    """Join the values that share bytes by way of ``op``; crossings are left out."""
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
    elif isinstance(op, LoopOp):
        for value, argument in zip((*op.carried, *op.scanned), op.body.block.args, strict=False):
            groups.join(value, argument)
        for inner, result in zip(cast(YieldOp, op.body.block.last_op).values, op.res, strict=True):
            groups.join(inner, result)


def _retained(block: Block) -> Iterator[tuple[SSAValue, str]]:
    """Yields the values whose placement is fixed, and what they are."""
    for argument in block.args:
        yield argument, "an input"
    if block.last_op is not None:
        for returned in block.last_op.operands:
            yield returned, "an output"
    for op in operations(block):
        if isinstance(op, ConstantOp):
            yield op.result, "a weight"
        elif isinstance(op, IfOp | LoopOp):
            subject = "used by a branch" if isinstance(op, IfOp) else "used by a loop"
            for value in _of_graphs(op):
                yield value, subject


def _of_graphs(op: IfOp | LoopOp) -> Iterator[SSAValue]:
    yield from op.operands
    yield from op.res
    for inner in op.walk():
        yield from inner.operands
        yield from inner.results
