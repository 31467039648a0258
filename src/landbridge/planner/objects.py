"""Plan images and textures: whole objects, used again only by what fits their shape and dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from landbridge.errors import PlanError
from landbridge.planner.buffers import BufferId
from landbridge.planner.object_checker import check_objects


@dataclass(frozen=True, slots=True)
class ObjectRequest:
    """An object of at least ``shape`` elements of ``dtype`` (``itemsize`` bytes each), in the half-open steps
    ``start <= t < end``."""

    id: BufferId
    shape: tuple[int, ...]
    dtype: str
    itemsize: int
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end <= self.start:
            raise PlanError(f"object {self.id!r} lives from {self.start} to {self.end} (exclusive), so never")

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.itemsize


@dataclass(frozen=True, slots=True)
class ObjectPlan:
    """``objects`` to allocate as (shape, dtype), and which of them (an index) each request uses; ``nbytes`` in all,
    where the requests' own largest sum at one step is ``lower_bound``."""

    objects: Sequence[tuple[tuple[int, ...], str]]
    uses: Mapping[BufferId, int]
    nbytes: int
    lower_bound: int


def plan_objects(requests: Sequence[ObjectRequest]) -> ObjectPlan:
    """An object for each request, so that requests that live at the same time never share one.

    The largest request first: it takes the smallest object there is that is free for all its life, of its dtype and
    at least its shape in every dimension; else an object is made for it. An object is as large as the request it was
    made for. Raises PlanError when ids repeat.
    """
    made: list[ObjectRequest] = []
    users: list[list[ObjectRequest]] = []
    uses: dict[BufferId, int] = {}
    for request in sorted(requests, key=lambda r: -r.nbytes):
        if request.id in uses:
            raise PlanError(f"two objects are called {request.id!r}; ids must differ")
        fitting = [
            k for k, first in enumerate(made)
            if _fits(request, first) and all(u.end <= request.start or request.end <= u.start for u in users[k])
        ]  # fmt: skip
        chosen = min(fitting, key=lambda k: made[k].nbytes, default=len(made))
        if chosen == len(made):
            made.append(request)
            users.append([])
        users[chosen].append(request)
        uses[request.id] = chosen
    live = (sum(r.nbytes for r in requests if r.start <= t < r.end) for t in {r.start for r in requests})
    result = ObjectPlan([(r.shape, r.dtype) for r in made], uses, sum(r.nbytes for r in made), max(live, default=0))
    check_objects(requests, result)
    return result


def _fits(request: ObjectRequest, first: ObjectRequest) -> bool:
    return (
        request.dtype == first.dtype
        and len(request.shape) == len(first.shape)
        and all(asked <= there for asked, there in zip(request.shape, first.shape, strict=True))
    )
