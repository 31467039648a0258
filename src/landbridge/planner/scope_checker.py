"""Checks the plans of several scopes. It shares no code with the planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from landbridge.errors import PlanError
from landbridge.planner.buffers import Buffer, DeviceScope, ScopedPlan, ScopeLimits
from landbridge.planner.checker import check


def check_scopes(
    buffers: Mapping[DeviceScope, Sequence[Buffer]], limits: Mapping[DeviceScope, ScopeLimits], scoped: ScopedPlan
) -> None:
    """Raises PlanError unless each buffer is planned once, in its requested scope or along that scope's spills.

    Every scope's plan must be correct and within its capacity.
    """
    requested = {b.id: (scope, b) for scope, found in buffers.items() for b in found}
    planned = [(id_, scope) for scope, found in scoped.plans.items() for id_ in found.offsets]
    if sorted(map(str, requested)) != sorted(str(id_) for id_, _ in planned):
        raise PlanError("some buffer is planned in no scope, or in two")
    ended: dict[DeviceScope, list[Buffer]] = {}
    where = dict(planned)
    for id_, scope in planned:
        wanted, buffer = requested[id_]
        if scope != wanted:
            legal, at = [], wanted
            while at in limits and (to := limits[at].spill_to) is not None and to not in legal:
                legal.append(to)
                at = to
            if scope not in legal or scoped.spilled.get(id_) != scope or buffer.offset is not None:
                raise PlanError(f"buffer {id_!r} was asked for in {wanted} and is planned in {scope}")
        if buffer.alias is not None and where.get(buffer.alias.of) != scope:
            if not buffer.alias.optional:
                raise PlanError(f"buffer {id_!r} is in {scope}, and what it is a view of is not")
            buffer = replace(buffer, alias=None)
        ended.setdefault(scope, []).append(buffer)
    for scope, found in ended.items():
        capacity = limits[scope].capacity if scope in limits else None
        check(found, scoped.plans[scope], capacity)
