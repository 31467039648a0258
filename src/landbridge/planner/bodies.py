"""Bodies: groups of buffers with fixed relative offsets, placed as one buffer that spans all in bytes and in time.

A group is a buffer with its views, and with the aliases that were taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.errors import PlanError
from landbridge.planner.buffers import Buffer
from landbridge.planner.views import roots, targets
from landbridge.records import record


@record(frozen=True)
class Body:
    """A buffer to place, ``hull``, and the byte at which each member (an index) starts in it."""

    hull: Buffer
    members: dict[int, int]


def variants(buffers: Sequence[Buffer]) -> list[list[Body]]:
    """Returns the different ways to merge ``buffers`` into bodies, each a list of bodies.

    One takes all optional aliases that are possible, largest buffer first; one those that waste no bytes (see
    ``_Merger.take``); one takes none. Equal ones are left out. Raises PlanError when required aliases contradict
    alignments, pins or each other.
    """
    target_indices = targets(buffers)
    root = roots(buffers, target_indices)
    required = _Merger(buffers, target_indices, root)
    optional = [i for i, b in enumerate(buffers) if b.alias is not None and b.alias.optional]
    optional.sort(key=lambda i: -buffers[i].size)
    found = [_Merger(buffers, target_indices, root), _Merger(buffers, target_indices, root), required]
    for i in optional:
        found[0].take(i)
        found[1].take(i, without_waste=True)
    unique = {tuple(sorted(map(tuple, m.bodies_by_root()))): m for m in found}
    return [merger.bodies() for merger in unique.values()]


class _Merger:
    """Merges buffers into bodies, and maps each body to its members with their start bytes.

    A body is named by the index of one of its members. Raises PlanError if required aliases contradict alignments, pins
    or each other.
    """

    def __init__(
        self, buffers: Sequence[Buffer], target_indices: Sequence[int | None], root: Sequence[tuple[int, int]]
    ) -> None:
        self._buffers, self._of, self._root = buffers, target_indices, root
        self._body = [group for group, _ in root]
        self._members: dict[int, dict[int, int]] = {}
        for i, (group, offset) in enumerate(root):
            self._members.setdefault(group, {})[i] = offset
        for group, members in self._members.items():
            why = self._impossible(members)
            if why is not None:
                raise PlanError(f"the views of buffer {buffers[group].id!r} cannot be placed: {why}")

    def take(self, i: int, without_waste: bool = False) -> None:
        """Join the body of buffer ``i`` and that of the target of its optional alias, if all members fit there.

        They do not if two members that live at the same time overlap, or if no offset suits all alignments and pins;
        then nothing changes. With ``without_waste``, they are joined only if the hull of the joined body, bytes times
        steps, is no larger than those of both bodies.
        """
        alias, target = self._buffers[i].alias, self._of[i]
        if alias is None or target is None or self._body[i] == self._body[target]:
            return
        below, above = self._body[target], self._body[i]
        shift = self._members[below][target] + alias.offset - self._members[above][i]
        moved = {k: offset + shift for k, offset in self._members[above].items()}
        clashes = any(self._clash(x, at, y, to, i) for x, at in moved.items() for y, to in self._members[below].items())
        joined = self._members[below] | moved
        if clashes or self._impossible(joined) is not None:
            return
        if without_waste and self._area(joined) > self._area(moved) + self._area(self._members[below]):
            return
        self._members[below] = joined
        del self._members[above]
        for k in moved:
            self._body[k] = below

    def bodies_by_root(self) -> list[list[int]]:
        return [sorted(members) for members in self._members.values()]

    def bodies(self) -> list[Body]:
        return [Body(self._hull(number, members), members) for number, members in enumerate(self._members.values())]

    def _hull(self, number: int, members: dict[int, int]) -> Buffer:
        inside = [self._buffers[i] for i in members]
        pin = next(
            (b.offset - at for b, at in zip(inside, members.values(), strict=True) if b.offset is not None), None
        )
        return Buffer(
            number,
            size=max(b.size + at for b, at in zip(inside, members.values(), strict=True)),
            alignment=max(b.alignment for b in inside),
            start=min(b.start for b in inside),
            end=max(b.end for b in inside),
            offset=pin,
        )

    def _area(self, members: dict[int, int]) -> int:
        hull = self._hull(0, members)
        return hull.size * (hull.end - hull.start)

    def _clash(self, x: int, x_at: int, y: int, y_at: int, taken: int) -> bool:
        """Returns whether ``x``, a member of a joining body, and ``y`` live at the same time and overlap at these byte
        offsets.

        Overlap that the alias of buffer ``taken`` allows does not count.
        """
        a, b = self._buffers[x], self._buffers[y]
        if not (a.start < b.end and b.start < a.end and x_at < y_at + b.size and y_at < x_at + a.size):
            return False
        target = self._of[taken]
        assert target is not None
        spoken_for = self._root[x][0] == self._root[taken][0] and self._root[y][0] == self._root[target][0]
        return not (spoken_for and a.start >= self._buffers[taken].start and b.end <= self._buffers[target].end)

    def _impossible(self, members: dict[int, int]) -> str | None:
        """Returns a clause that says why no offset suits all members' alignments and pins; None if one does."""
        inside = [(self._buffers[i], at) for i, at in members.items()]
        for b, at in inside:
            if at % b.alignment:
                return f"{b.id!r} would start at byte {at}, and needs a multiple of {b.alignment}"
        pins = {b.offset - at: b for b, at in inside if b.offset is not None}
        if len(pins) > 1:
            return f"{' and '.join(repr(b.id) for b in pins.values())} are pinned to bytes that do not agree"
        alignment = max(b.alignment for b, _ in inside)
        for pin, b in pins.items():
            if pin < 0 or pin % alignment:
                return f"the pin of {b.id!r} puts the whole at byte {pin}; legal: a multiple of {alignment}, 0 or more"
        return None
