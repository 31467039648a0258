"""Plans several scopes of devices, each with its own capacity; what does not fit spills to another scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from landbridge.errors import PlanError
from landbridge.planner.buffers import Buffer, BufferId, DeviceScope, Plan, ScopedPlan, ScopeLimits
from landbridge.planner.checker import check_scopes
from landbridge.planner.lower_bound import lower_bound
from landbridge.planner.plan import plan
from landbridge.planner.views import least, roots, targets


def plan_scopes(
    buffers: Mapping[DeviceScope, Sequence[Buffer]],
    limits: Mapping[DeviceScope, ScopeLimits],
    *,
    uses: Mapping[BufferId, float] | None = None,
    budget_seconds: float = 0.5,
) -> ScopedPlan:
    """Returns a Plan for each scope, and the scope of each buffer that spilled.

    Planning a scope may take ``budget_seconds``. A scope that is not in ``limits`` is unlimited and does not spill.

    While the buffers of a scope do not fit, one of those that are in the way leaves for the scope's ``spill_to``, with
    its views: with ``uses`` (reads and writes of each id; 0 for others) the one with the fewest uses per byte, else the
    largest. Those that left come back, the last first, as long as they fit. In its new scope, a buffer is planned with
    that scope's own, and may spill again. Pinned buffers stay. Optional aliases between scopes are dropped.

    Raises PlanError when ids repeat, scopes spill in a ring, or a scope whose buffers cannot leave is too small.
    """
    waiting = {scope: list(found) for scope, found in buffers.items()}
    _check_ids(waiting)
    plans: dict[DeviceScope, Plan] = {}
    spilled: dict[BufferId, DeviceScope] = {}
    for scope in _spill_order(waiting, limits):
        limit = limits.get(scope, ScopeLimits())
        stay = [_aligned(b, limit.alignment) for b in _own_aliases(waiting.get(scope, []))]
        if limit.spill_to is not None and limit.capacity is not None:
            stay, leaving = _divided(stay, limit.capacity, uses, budget_seconds)
            waiting.setdefault(limit.spill_to, []).extend(leaving)
            spilled.update((b.id, limit.spill_to) for b in leaving)
        if stay:
            try:
                plans[scope] = plan(stay, limit.capacity, budget_seconds)
            except PlanError as error:
                raise PlanError(f"scope {scope[1]!r} of {scope[0]!r}: {error}") from error
    result = ScopedPlan(plans, spilled)
    check_scopes(buffers, limits, result)
    return result


def _aligned(b: Buffer, alignment: int) -> Buffer:
    if b.alias is not None and not b.alias.optional:
        return b  # it lies in one that is aligned
    return replace(b, alignment=max(b.alignment, alignment))


def _divided(
    buffers: Sequence[Buffer], capacity: int, uses: Mapping[BufferId, float] | None, budget_seconds: float
) -> tuple[list[Buffer], list[Buffer]]:
    """Returns the buffers that stay in a scope, and those that leave it for its ``spill_to``.

    Those that stay have a plan within ``capacity`` bytes, unless pinned buffers prevent one.
    """
    views = _views(buffers)
    stay, left = dict(views), list[BufferId]()
    while True:
        inside = [b for members in stay.values() for b in members]
        in_the_way = _in_the_way(inside, capacity, budget_seconds)
        candidates = [
            root for root, members in stay.items()
            if any(b.id in in_the_way for b in members) and all(b.offset is None for b in members)
        ]  # fmt: skip
        if not candidates:  # it fits, or nothing that could leave would help
            break
        worst = min(candidates, key=lambda root: (_worth(stay[root], uses), -_bytes(stay[root])))
        left.append(worst)
        del stay[worst]
    for root in reversed(left):
        inside = [b for members in stay.values() for b in members] + views[root]
        if not _in_the_way(inside, capacity, budget_seconds):
            stay[root] = views[root]
    leaving = [b for root, members in views.items() if root not in stay for b in members]
    return _own_aliases([b for members in stay.values() for b in members]), leaving


def _in_the_way(buffers: Sequence[Buffer], capacity: int, budget_seconds: float) -> set[BufferId]:
    """Returns the ids of buffers of which one has to leave; empty if all fit, or if pinned buffers prevent a plan.

    They are the buffers that end above the capacity in the best plan found, or all that live at the step with the most
    bytes if these exceed the capacity.
    """
    buffers = _own_aliases(buffers)
    if lower_bound(buffers) <= capacity:
        found = plan(buffers, budget_seconds=budget_seconds, goal=capacity)
        return {b.id for b in buffers if found.offsets[b.id] + b.size > capacity}
    if any(b.offset is not None and b.offset + b.size > capacity for b in buffers):
        return set()
    needed = least(buffers)
    over = max((b.start for b in needed), key=lambda t: sum(b.size for b in needed if b.start <= t < b.end))
    return {b.id for b in buffers if b.size and b.start <= over < b.end}


def _worth(members: Sequence[Buffer], uses: Mapping[BufferId, float] | None) -> float:
    return 0.0 if uses is None else sum(uses.get(b.id, 0.0) for b in members) / max(1, _bytes(members))


def _bytes(members: Sequence[Buffer]) -> int:
    return max(b.size for b in members)  # views lie in the largest of them


def _views(buffers: Sequence[Buffer]) -> dict[BufferId, list[Buffer]]:
    """Returns buffers with their views, by the id of the root of the views."""
    found: dict[BufferId, list[Buffer]] = {}
    for b, (root, _) in zip(buffers, roots(buffers, targets(buffers)), strict=True):
        found.setdefault(buffers[root].id, []).append(b)
    return found


def _own_aliases(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Returns ``buffers``, with the optional aliases to buffers that are not among them removed."""
    here = {b.id for b in buffers}
    return [
        replace(b, alias=None) if b.alias is not None and b.alias.optional and b.alias.of not in here else b
        for b in buffers
    ]


def _check_ids(waiting: Mapping[DeviceScope, Sequence[Buffer]]) -> None:
    seen: set[BufferId] = set()
    for found in waiting.values():
        for b in found:
            if b.id in seen:
                raise PlanError(f"two buffers are called {b.id!r}; ids must differ over all scopes")
            seen.add(b.id)


def _spill_order(waiting: Mapping[DeviceScope, object], limits: Mapping[DeviceScope, ScopeLimits]) -> list[DeviceScope]:
    """Returns the scopes in an order in which each precedes the one that it spills to."""
    order: list[DeviceScope] = []
    for scope in [*waiting, *limits]:
        chain: list[DeviceScope] = []
        at: DeviceScope | None = scope
        while at is not None and at not in order:
            if at in chain:
                raise PlanError(f"scopes spill in a ring: {' -> '.join(f'{d} {s}' for d, s in [*chain, at])}")
            chain.append(at)
            at = limits[at].spill_to if at in limits else None
        # The end of the chain is in order already, with nothing of this chain before it: insert these before it.
        where = len(order) if at is None else order.index(at)
        order[where:where] = chain
    return order
