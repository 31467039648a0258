"""The storage planner: pure data in, pure data out.

`plan` plans the flat bytes of one (device, scope), `plan_scopes` those of several with capacities and spills,
`plan_rows` a 2-D scratchpad, `plan_objects` images. Every plan has passed a checker that shares no code with it.
"""

from __future__ import annotations

from landbridge.planner.buffers import Alias, Buffer, BufferId, Plan
from landbridge.planner.checker import check
from landbridge.planner.lower_bound import lower_bound
from landbridge.planner.object_checker import check_objects
from landbridge.planner.objects import ObjectPlan, ObjectRequest, plan_objects
from landbridge.planner.plan import plan
from landbridge.planner.row_checker import check_rows
from landbridge.planner.rows import RowBuffer, RowPlan, plan_rows
from landbridge.planner.scope_checker import check_scopes
from landbridge.planner.scopes import Room, ScopedPlan, plan_scopes

__all__ = [
    "Alias",
    "Buffer",
    "BufferId",
    "ObjectPlan",
    "ObjectRequest",
    "Plan",
    "Room",
    "RowBuffer",
    "RowPlan",
    "ScopedPlan",
    "check",
    "check_objects",
    "check_rows",
    "check_scopes",
    "lower_bound",
    "plan",
    "plan_objects",
    "plan_rows",
    "plan_scopes",
]
