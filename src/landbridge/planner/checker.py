"""Checks plans of bytes, rows, objects and several scopes. No code is shared with the planner, so its faults show."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np

from landbridge.errors import PlanError
from landbridge.planner.buffers import (
    Buffer,
    BufferId,
    DeviceScope,
    ObjectPlan,
    ObjectRequest,
    Plan,
    RowBuffer,
    RowPlan,
    ScopedPlan,
    ScopeLimits,
)


def check(buffers: Sequence[Buffer], plan: Plan, capacity: int | None = None) -> None:
    """Raises PlanError unless ``plan`` is a correct plan of ``buffers`` within ``capacity`` bytes.

    It tests ids, offsets, alignments, pins, aliases, every pair of buffers, the peak, the bound and ``proved_optimal``.
    """
    _check_ids(buffers, plan)
    _check_aliases(buffers, plan)
    for b in buffers:
        offset = plan.offsets[b.id]
        if offset < 0 or offset % b.alignment != 0:
            raise PlanError(f"buffer {b.id!r} is at offset {offset}, not a multiple of {b.alignment} from 0 on")
        if b.offset is not None and offset != b.offset:
            raise PlanError(f"buffer {b.id!r} is pinned to {b.offset} and was placed at {offset}")
        if offset + b.size > plan.peak:
            raise PlanError(f"buffer {b.id!r} ends at {offset + b.size}, above the stated peak {plan.peak}")
    _check_pairs(buffers, plan)
    needed = max((plan.offsets[b.id] + b.size for b in buffers), default=0)
    if plan.peak != needed:
        raise PlanError(f"the stated peak is {plan.peak}, the offsets need {needed}")
    if capacity is not None and plan.peak > capacity:
        raise PlanError(f"the plan needs {plan.peak} bytes and the scope has {capacity}")
    if plan.lower_bound > plan.peak:
        raise PlanError(f"the stated lower bound {plan.lower_bound} is above the peak {plan.peak}")
    if plan.proved_optimal and plan.lower_bound != plan.peak:
        raise PlanError(f"the plan claims to be optimal with a peak of {plan.peak} over a bound of {plan.lower_bound}")


def _check_ids(buffers: Sequence[Buffer], plan: Plan) -> None:
    ids = [b.id for b in buffers]
    if len(set(ids)) != len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise PlanError(f"two buffers are called {twice!r}; ids must differ")
    if set(ids) != set(plan.offsets):
        wrong = set(ids) ^ set(plan.offsets)
        raise PlanError(f"buffers and offsets differ in {sorted(map(str, wrong))[:5]}")


def _check_aliases(buffers: Sequence[Buffer], plan: Plan) -> None:
    named = {b.id: b for b in buffers}
    for b in buffers:
        if b.alias is None:
            continue
        aliased = named.get(b.alias.of)
        if aliased is None or b.alias.offset < 0 or b.alias.offset + b.size > aliased.size:
            raise PlanError(f"buffer {b.id!r} is an alias of bytes that {b.alias.of!r} does not have")
        if not b.alias.optional and plan.offsets[b.id] != plan.offsets[aliased.id] + b.alias.offset:
            raise PlanError(
                f"buffer {b.id!r} is byte {b.alias.offset} and on of {aliased.id!r} at {plan.offsets[aliased.id]}, and "
                "was "
                f"placed at {plan.offsets[b.id]}"
            )


def _may_share(a: Buffer, b: Buffer, named: dict[BufferId, Buffer], plan: Plan) -> bool:
    """Returns whether aliases allow the overlap of two buffers that live at the same time."""
    viewed_a, viewed_b = _viewed(a, named), _viewed(b, named)
    if viewed_a is viewed_b:
        return True
    for upper, placed, lower, below in ((a, viewed_a, b, viewed_b), (b, viewed_b, a, viewed_a)):
        alias = placed.alias
        if alias is None or _viewed(named[alias.of], named) is not below:
            continue
        there = plan.offsets[placed.id] == plan.offsets[alias.of] + alias.offset
        if there and upper.start >= placed.start and lower.end <= named[alias.of].end:
            return True
    return False


def _viewed(b: Buffer, named: dict[BufferId, Buffer]) -> Buffer:
    for _ in named:
        if b.alias is None or b.alias.optional:
            return b
        b = named[b.alias.of]
    raise PlanError(f"buffer {b.id!r} is a view of itself")


def _check_pairs(buffers: Sequence[Buffer], plan: Plan) -> None:
    """Compare each buffer with all that start while it lives, vectorized, as there may be thousands."""
    named = {b.id: b for b in buffers}
    started = sorted((b for b in buffers if b.size), key=lambda b: b.start)
    starts = [b.start for b in started]
    lows = np.array([plan.offsets[b.id] for b in started])
    highs = np.array([plan.offsets[b.id] + b.size for b in started])
    for n, b in enumerate(started):
        b_low = plan.offsets[b.id]
        b_high = b_low + b.size
        later = slice(n + 1, bisect_left(starts, b.end))
        for m in np.flatnonzero((lows[later] < b_high) & (highs[later] > b_low)):
            other = started[n + 1 + int(m)]
            if (b.alias or other.alias) and _may_share(b, other, named, plan):
                continue
            low = plan.offsets[other.id]
            raise PlanError(
                f"buffers {b.id!r} (steps {b.start} to {b.end}, bytes {b_low} to {b_high}) and {other.id!r} "
                f"(steps {other.start} to {other.end}, bytes {low} to {low + other.size}) overlap"
            )


def check_rows(buffers: Sequence[RowBuffer], plan: RowPlan, rows: int | None, contiguous: bool) -> None:
    """Raises PlanError unless every buffer has its rows, and shares none with a buffer that lives at the same time."""
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
    """Raises PlanError unless each request has an object of its dtype and of at least its shape, and no object serves
    two requests at the same time or none at all.
    """
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
