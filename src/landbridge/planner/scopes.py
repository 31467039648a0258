"""Plan several (device, scope) places: each its own bytes and capacity, with somewhere to go for what does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from landbridge.errors import PlanError
from landbridge.planner.buffers import Buffer, BufferId, Plan
from landbridge.planner.lower_bound import lower_bound
from landbridge.planner.plan import plan
from landbridge.planner.scope_checker import check_scopes
from landbridge.planner.views import least, roots, targets

Place = tuple[str, str]
"""(device, scope). Two places never share bytes."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a place has: ``capacity`` bytes (None: no known end), offsets at multiples of ``alignment``, and the
    place that takes what does not fit (None: nothing may leave)."""

    capacity: int | None = None
    alignment: int = 1
    spill_to: Place | None = None


@dataclass(frozen=True, slots=True)
class ScopedPlan:
    """One Plan for each place that buffers ended in, and by id the place each spilled buffer ended in."""

    plans: Mapping[Place, Plan]
    spilled: Mapping[BufferId, Place] = field(default_factory=dict)


def plan_scopes(
    buffers: Mapping[Place, Sequence[Buffer]],
    rooms: Mapping[Place, Room],
    *,
    uses: Mapping[BufferId, float] | None = None,
    budget_seconds: float = 0.5,
) -> ScopedPlan:
    """A Plan for each place, ``budget_seconds`` for each; places not in ``rooms`` have no end and no other place.

    While a place does not hold its buffers, one of those that stand in the way leaves: with ``uses`` (how often each
    id is read or written; 0 for those not named) the one with the fewest uses a byte, else the largest; then, as
    long as they fit again, those that left come back, the last first. Pinned buffers stay; a buffer goes together
    with its views; an optional Alias that now leads to another place is dropped. What leaves is planned with those
    that are in its new place already, and may be sent on from there.

    Raises PlanError when ids repeat, spill places form a ring, or a place whose buffers cannot leave is too small.
    """
    waiting = {place: list(found) for place, found in buffers.items()}
    _check_ids(waiting)
    plans: dict[Place, Plan] = {}
    spilled: dict[BufferId, Place] = {}
    for place in _spill_order(waiting, rooms):
        room = rooms.get(place, Room())
        stay = [_aligned(b, room.alignment) for b in _own_aliases(waiting.get(place, []))]
        if room.spill_to is not None and room.capacity is not None:
            stay, leaving = _divided(stay, room.capacity, uses, budget_seconds)
            waiting.setdefault(room.spill_to, []).extend(leaving)
            spilled.update((b.id, room.spill_to) for b in leaving)
        if stay:
            try:
                plans[place] = plan(stay, room.capacity, budget_seconds)
            except PlanError as error:
                raise PlanError(f"scope {place[1]!r} of {place[0]!r}: {error}") from error
    result = ScopedPlan(plans, spilled)
    check_scopes(buffers, rooms, result)
    return result


def _aligned(b: Buffer, alignment: int) -> Buffer:
    if b.alias is not None and not b.alias.optional:
        return b  # lies in one that is aligned
    return replace(b, alignment=max(b.alignment, alignment))


def _divided(
    buffers: Sequence[Buffer], capacity: int, uses: Mapping[BufferId, float] | None, budget_seconds: float
) -> tuple[list[Buffer], list[Buffer]]:
    """Those that stay, with a plan within ``capacity``, and those that leave."""
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
    """Ids of which one must leave, or had better; empty when a plan was found, or pins forbid one."""
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
    """Buffers with their views, by the id of what all of them are views of."""
    found: dict[BufferId, list[Buffer]] = {}
    for b, (root, _) in zip(buffers, roots(buffers, targets(buffers)), strict=True):
        found.setdefault(buffers[root].id, []).append(b)
    return found


def _own_aliases(buffers: Sequence[Buffer]) -> list[Buffer]:
    """``buffers`` without the optional aliases of those that are not among them."""
    here = {b.id for b in buffers}
    return [
        replace(b, alias=None) if b.alias is not None and b.alias.optional and b.alias.of not in here else b
        for b in buffers
    ]


def _check_ids(waiting: Mapping[Place, Sequence[Buffer]]) -> None:
    seen: set[BufferId] = set()
    for found in waiting.values():
        for b in found:
            if b.id in seen:
                raise PlanError(f"two buffers are called {b.id!r}; ids must differ over all places")
            seen.add(b.id)


def _spill_order(waiting: Mapping[Place, object], rooms: Mapping[Place, Room]) -> list[Place]:
    """Every place before the one it spills to."""
    order: list[Place] = []
    for place in [*waiting, *rooms]:
        chain: list[Place] = []
        at: Place | None = place
        while at is not None and at not in order:
            if at in chain:
                raise PlanError(f"places spill in a ring: {' -> '.join(f'{d} {s}' for d, s in [*chain, at])}")
            chain.append(at)
            at = rooms[at].spill_to if at in rooms else None
        # What the chain ends in is in order already, after nothing of this chain: put these before it.
        where = len(order) if at is None else order.index(at)
        order[where:where] = chain
    return order
