"""Spill: tensors that exceed the capacity of a scope move to the scope that was named for it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from landbridge import planner
from landbridge.analysis.lifetimes import root, steps
from landbridge.analysis.scopes import Scope, round_up, scopes_of
from landbridge.errors import PlacementError, PlanError
from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.ir.graph_ops import ToVDeviceOp, ViewOp
from landbridge.ir.main_attributes import set_spill_requests, take_spill_requests
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import place_on, placed_on
from landbridge.ir.types import VDeviceAttr
from landbridge.memory_kind import normalize_scope
from landbridge.passes.place.spaces import match_spaces
from landbridge.passes.registry import register_pass


def request_spill(module: IRModule, spill: Mapping[str, str]) -> None:
    """Record in ``module`` to which scope the tensors of a scope may spill, for the pass ``spill``.

    Raises PlacementError for a scope that no target describes and for one that leads to itself.
    """
    for source, destination in spill.items():
        requested = f"spill={{{source!r}: {destination!r}}}"
        for scope, flat in ((source, False), (destination, True)):
            if not _described(module, scope, flat=flat):
                raise PlacementError(
                    f"{requested}: no target describes {scope!r}{' as flat memory' if flat else ''}; legal: scopes of "
                    "memory=[...], to a flat one"
                )
        if source == destination:
            raise PlacementError(f"{requested} leads to itself; name another scope")
    if spill:
        set_spill_requests(module.main, spill)


def _described(module: IRModule, scope: str, *, flat: bool) -> bool:
    """Returns whether a target describes memory ``scope``, or describes no memory."""
    name = normalize_scope(scope)
    return any(
        not target.memory or any(kind.scope == name and (kind.ndim == 1 or not flat) for kind in target.memory)
        for target in module.targets
    )


@register_pass("spill")
def spill(module: IRModule) -> None:
    """Move buffers and weights that do not fit their scope to the scope that ``lb.spill`` names for it."""
    destinations = take_spill_requests(module.main)
    if not destinations:
        return
    uses = _uses(module)
    for scope in scopes_of(module):
        destination = destinations.get(scope.kind.scope)
        if destination is None or scope.kind.capacity is None:
            continue
        for buffer in _leaving(scope, uses):
            _move(buffer, destination)
    match_spaces(module)


def _uses(module: IRModule) -> Counter[SSAValue]:
    """Returns how many kernels use each buffer."""
    return Counter(root(value) for _, touched in steps(module.main.body.block) for value in touched)


def _leaving(scope: Scope, uses: Mapping[SSAValue, int]) -> list[SSAValue]:
    """Returns the buffers and weights with the fewest uses per byte that have to leave so that the others fit."""
    here, there = ("", scope.kind.scope), ("", "")
    values: dict[str, list[SSAValue]] = {}
    buffers = []
    for name, alloc in zip(scope.names, scope.allocs, strict=True):
        nbytes = alloc.nbytes
        if scope.kind.ndim > 1:
            rows = max(1, math.prod(alloc.extents[:-1]))
            nbytes = rows * round_up(nbytes // rows, scope.kind.row_alignment)
        buffers.append(alloc.buffer(name, round_up(nbytes, scope.kind.coherence_granule), 1))
        values[name] = [alloc.op.memref]
    end = max((alloc.life.last for alloc in scope.allocs), default=0) + 1
    assert scope.kind.capacity is not None
    capacity = scope.kind.capacity
    for resident in scope.residents:
        if not resident.ops:  # callers bind inputs and outputs in this scope
            capacity -= resident.nbytes
            continue
        name = f"weight {resident.name}#{len(values)}"
        buffers.append(planner.Buffer(name, resident.nbytes, 1, 0, end))
        values[name] = [op.result for op in resident.ops]
    alignment = max(STORAGE_ALIGNMENT, scope.kind.offset_alignment) if scope.kind.ndim == 1 else 1
    try:
        found = planner.plan_scopes(
            {here: buffers},
            {here: planner.ScopeLimits(max(0, capacity), alignment, there)},
            uses={name: sum(uses[value] for value in same) for name, same in values.items()},
        )
    except PlanError as error:
        raise PlacementError(f"scope {scope.kind.scope!r} of vdevice {scope.vdevice!r}: {error}") from error
    return [value for name, same in values.items() if name in found.spilled for value in same]


def _move(buffer: SSAValue, scope: str) -> None:
    """Move a buffer or a weight, and its views, to another flat scope of the same vdevice."""
    op = buffer.owner
    assert isinstance(op, Operation)
    vdevice = VDeviceAttr.of(placed_on(op).index.data, scope)
    place_on(op, vdevice)
    pending = [buffer]
    while pending:
        value = pending.pop()
        ty = value.type
        pending += [use.operation.results[0] for use in value.uses if isinstance(use.operation, ViewOp | ToVDeviceOp)]
        if isinstance(ty, MemRefType):
            Rewriter.replace_value_with_new_type(value, MemRefType(ty.element_type, ty.shape, ty.layout, vdevice.space))
