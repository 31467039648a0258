"""Check plans of several places, of rows and of objects. Shares no code with what makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from landbridge.errors import PlanError
from landbridge.planner.buffers import Buffer
from landbridge.planner.checker import check

if TYPE_CHECKING:
    from landbridge.planner.objects import ObjectPlan, ObjectRequest
    from landbridge.planner.rows import RowBuffer, RowPlan
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


def check_rows(buffers: Sequence[RowBuffer], plan: RowPlan, rows: int | None, contiguous: bool) -> None:
    """Raise PlanError unless every buffer has its rows, and none has one of another that lives with it."""
    for b in buffers:
        mine = list(plan.rows[b.id])
        if len(mine) != b.rows or len(set(mine)) != b.rows or any(not 0 <= row < plan.peak for row in mine):
            raise PlanError(f"buffer {b.id!r} needs {b.rows} rows below {plan.peak} and has {mine}")
        if contiguous and any(after != before + 1 for before, after in pairwise(mine)):
            raise PlanError(f"the rows of buffer {b.id!r} do not follow each other: {mine}")
    for a, b in combinations(buffers, 2):
        if a.start < b.end and b.start < a.end and (both := set(plan.rows[a.id]) & set(plan.rows[b.id])):
            raise PlanError(f"buffers {a.id!r} and {b.id!r} live at the same time and share rows {sorted(both)}")
    if rows is not None and plan.peak > rows:
        raise PlanError(f"the plan needs {plan.peak} rows and the scratchpad has {rows}")


def check_objects(requests: Sequence[ObjectRequest], plan: ObjectPlan) -> None:
    """Raise PlanError unless every request has an object that fits it, and none that lives with it has the same."""
    used = set()
    for r in requests:
        shape, dtype = plan.objects[plan.uses[r.id]]
        if dtype != r.dtype or len(shape) != len(r.shape) or any(n > m for n, m in zip(r.shape, shape, strict=True)):
            raise PlanError(f"object {r.id!r} of {r.shape} {r.dtype} was given one of {shape} {dtype}")
        used.add(plan.uses[r.id])
    for a, b in combinations(requests, 2):
        if a.start < b.end and b.start < a.end and plan.uses[a.id] == plan.uses[b.id]:
            raise PlanError(f"objects {a.id!r} and {b.id!r} live at the same time and are the same")
    if len(used) != len(plan.objects):
        raise PlanError("an object is made that nothing uses")
