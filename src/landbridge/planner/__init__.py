"""The storage planner: functions from plain buffers to plans, without side effects.

`plan` plans the flat bytes of one (device, scope), `plan_scopes` those of several with capacities and spills,
`plan_rows` a 2-D scratchpad, `plan_objects` images. Every plan has passed a checker that shares no code with it.
"""

from __future__ import annotations

from landbridge.planner.buffers import (
    Alias,
    Buffer,
    BufferId,
    ObjectPlan,
    ObjectRequest,
    Plan,
    RowBuffer,
    RowPlan,
    ScopedPlan,
    ScopeLimits,
)
from landbridge.planner.checker import check, check_objects, check_rows, check_scopes
from landbridge.planner.lower_bound import lower_bound
from landbridge.planner.object_planner import plan_objects
from landbridge.planner.plan import plan
from landbridge.planner.row_planner import plan_rows
from landbridge.planner.scope_planner import plan_scopes
from landbridge.planner.support import supported

__all__ = [
    "Alias",
    "Buffer",
    "BufferId",
    "ObjectPlan",
    "ObjectRequest",
    "Plan",
    "RowBuffer",
    "RowPlan",
    "ScopeLimits",
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
    "supported",
]
