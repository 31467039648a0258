"""Checks a plan of objects. It shares no code with the planner."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from landbridge.errors import PlanError
from landbridge.planner.buffers import ObjectPlan, ObjectRequest


def check_objects(requests: Sequence[ObjectRequest], plan: ObjectPlan) -> None:
    """Raises PlanError unless every request has an object that fits, shared with no request that lives at the same
    time."""
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
