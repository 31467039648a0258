"""Plans images and textures: whole objects, reused only by requests that fit their shape and dtype."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.errors import PlanError
from landbridge.planner.buffers import BufferId, ObjectPlan, ObjectRequest
from landbridge.planner.checker import check_objects


def plan_objects(requests: Sequence[ObjectRequest]) -> ObjectPlan:
    """Returns a plan with an object for each request, so that requests that live at the same time never share one.

    The largest request first: it takes the smallest existing object that is free for all its life, of its dtype and at
    least its shape in every dimension; else an object is added for it. An object is as large as the request it was
    added for. Raises PlanError when ids repeat.
    """
    objects: list[ObjectRequest] = []
    users: list[list[ObjectRequest]] = []
    uses: dict[BufferId, int] = {}
    for request in sorted(requests, key=lambda r: -r.nbytes):
        if request.id in uses:
            raise PlanError(f"two objects are called {request.id!r}; ids must differ")
        fitting = [
            k for k, first in enumerate(objects)
            if _fits(request, first) and all(u.end <= request.start or request.end <= u.start for u in users[k])
        ]  # fmt: skip
        chosen = min(fitting, key=lambda k: objects[k].nbytes, default=len(objects))
        if chosen == len(objects):
            objects.append(request)
            users.append([])
        users[chosen].append(request)
        uses[request.id] = chosen
    live = (sum(r.nbytes for r in requests if r.start <= t < r.end) for t in {r.start for r in requests})
    result = ObjectPlan(
        [(r.shape, r.dtype) for r in objects], uses, sum(r.nbytes for r in objects), max(live, default=0)
    )
    check_objects(requests, result)
    return result


def _fits(request: ObjectRequest, first: ObjectRequest) -> bool:
    return (
        request.dtype == first.dtype
        and len(request.shape) == len(first.shape)
        and all(requested <= there for requested, there in zip(request.shape, first.shape, strict=True))
    )
