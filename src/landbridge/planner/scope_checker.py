"""Check the plans of several places. Shares no code with what makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from landbridge.errors import PlanError
from landbridge.planner.buffers import Buffer
from landbridge.planner.checker import check

if TYPE_CHECKING:
    from landbridge.planner.scopes import Place, Room, ScopedPlan


def check_scopes(buffers: Mapping[Place, Sequence[Buffer]], rooms: Mapping[Place, Room], scoped: ScopedPlan) -> None:
    """Raise PlanError unless each buffer is planned once, where it was asked to be or down that place's spills, and
    every place's plan is correct and within its capacity."""
    asked = {b.id: (place, b) for place, found in buffers.items() for b in found}
    planned = [(id_, place) for place, found in scoped.plans.items() for id_ in found.offsets]
    if sorted(map(str, asked)) != sorted(str(id_) for id_, _ in planned):
        raise PlanError("some buffer is planned in no place, or in two")
    ended: dict[Place, list[Buffer]] = {}
    where = dict(planned)
    for id_, place in planned:
        wanted, buffer = asked[id_]
        if place != wanted:
            legal, at = [], wanted
            while at in rooms and (to := rooms[at].spill_to) is not None and to not in legal:
                legal.append(to)
                at = to
            if place not in legal or scoped.spilled.get(id_) != place or buffer.offset is not None:
                raise PlanError(f"buffer {id_!r} was asked for in {wanted} and is planned in {place}")
        if buffer.alias is not None and where.get(buffer.alias.of) != place:
            if not buffer.alias.optional:
                raise PlanError(f"buffer {id_!r} is in {place}, and what it is a view of is not")
            buffer = replace(buffer, alias=None)
        ended.setdefault(place, []).append(buffer)
    for place, found in ended.items():
        capacity = rooms[place].capacity if place in rooms else None
        check(found, scoped.plans[place], capacity)
