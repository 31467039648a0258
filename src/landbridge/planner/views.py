"""Views: which buffers are bytes of others, by required aliases, and the least bytes that all need with those."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from landbridge.errors import PlanError
from landbridge.planner.buffers import Buffer


def targets(buffers: Sequence[Buffer]) -> list[int | None]:
    """Returns for each buffer the index of the one that its alias names, or None.

    Raises PlanError when there is none of that id, the alias reaches past its end, or aliases form a ring.
    """
    number = {b.id: i for i, b in enumerate(buffers)}
    found: list[int | None] = []
    for b in buffers:
        if b.alias is None:
            found.append(None)
            continue
        if b.alias.of not in number:
            raise PlanError(f"buffer {b.id!r} is an alias of {b.alias.of!r}, and there is no such buffer")
        target_indices = buffers[number[b.alias.of]]
        if b.alias.offset < 0 or b.alias.offset + b.size > target_indices.size:
            raise PlanError(
                f"buffer {b.id!r} is an alias of bytes {b.alias.offset} to {b.alias.offset + b.size} of "
                f"{target_indices.id!r}, "
                f"which has {target_indices.size}"
            )
        found.append(number[target_indices.id])
    for i in range(len(buffers)):
        at, steps = found[i], 0
        while at is not None:
            at, steps = found[at], steps + 1
            if steps > len(buffers):
                raise PlanError(f"buffer {buffers[i].id!r} is, through others, an alias of itself")
    return found


def roots(buffers: Sequence[Buffer], target_indices: Sequence[int | None]) -> list[tuple[int, int]]:
    """Returns for each buffer its root (itself if it is no view), and the byte of the root at which it starts."""
    found = []
    for i in range(len(buffers)):
        offset, at = 0, i
        while (alias := buffers[at].alias) is not None and not alias.optional:
            offset += alias.offset
            target = target_indices[at]
            assert target is not None  # targets() has checked that an alias has a target
            at = target
        found.append((at, offset))
    return found


def least(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Returns buffers without aliases that live when ``buffers`` do and need no more bytes at any step than any
    placement.

    A group is all views of one buffer; it needs the bytes that its living members cover. Two groups can share bytes
    only when an optional alias leads from one to the other: of a chain of such, the last living one counts.
    """
    targets_of = targets(buffers)
    root = roots(buffers, targets_of)
    members: dict[int, list[int]] = {}
    for i, (group, _) in enumerate(root):
        members.setdefault(group, []).append(i)
    lives = {group: [(buffers[i].start, buffers[i].end) for i in inside] for group, inside in members.items()}
    counted: list[Buffer] = []
    for group, inside in members.items():
        above = list(_above(group, targets_of, root))
        if not above and len(inside) == 1:
            counted.append(replace(buffers[group], alias=None))
            continue
        steps = sorted(
            {t for span in lives[group] for t in span} | {t for other in above for span in lives[other] for t in span}
        )
        for start, end in pairwise(steps):
            living = [i for i in inside if buffers[i].start <= start < buffers[i].end]
            if living and not any(a <= start < b for other in above for a, b in lives[other]):
                covered = _covered((root[i][1], root[i][1] + buffers[i].size) for i in living)
                alignment = min(buffers[i].alignment for i in living)
                counted.append(Buffer(f"{group} at {start}", covered, alignment, start, end))
    return counted


def _above(group: int, target_indices: Sequence[int | None], root: Sequence[tuple[int, int]]) -> Iterable[int]:
    while (target := target_indices[group]) is not None:
        group = root[target][0]
        yield group


def _covered(ranges: Iterable[tuple[int, int]]) -> int:
    total = top = 0
    for low, high in sorted(ranges):
        total += max(0, high - max(low, top))
        top = max(top, high)
    return total
