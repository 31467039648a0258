"""Rigid placement: places bodies by their exact shape in bytes and time, where the block around them would waste
both."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from landbridge.planner.bodies import Body
from landbridge.planner.buffers import Buffer


def place_rigid(
    buffers: Sequence[Buffer], bodies: Sequence[Body], conflicts: Sequence[Sequence[int]], order: Sequence[int]
) -> list[int]:
    """Returns byte offsets of the ``buffers`` when bodies are placed in ``order``, each as low as all its members fit.

    ``order`` (indices of ``bodies``) must have the pinned ones first; ``conflicts`` are those of ``buffers``.
    """
    body_of = {i: k for k, body in enumerate(bodies) for i in body.members}
    offsets = [-1] * len(buffers)
    # Byte ranges taken by a buffer's conflicts so far, sorted by offset; they may overlap each other.
    taken: list[list[tuple[int, int]]] = [[] for _ in buffers]
    for k in order:
        body = bodies[k]
        base = _lowest(buffers, body, taken) if body.hull.offset is None else body.hull.offset
        for i, byte in body.members.items():
            offsets[i] = base + byte
            for j in conflicts[i]:
                if body_of[j] != k and offsets[j] < 0:
                    insort(taken[j], (offsets[i], offsets[i] + buffers[i].size))
    return offsets


def _lowest(buffers: Sequence[Buffer], body: Body, taken: Sequence[Sequence[tuple[int, int]]]) -> int:
    alignment = body.hull.alignment
    base, raised = 0, True
    while raised:
        raised = False
        for i, byte in body.members.items():
            free = _free(taken[i], base + byte, buffers[i].size) - byte
            if free > base:
                base, raised = -(-free // alignment) * alignment, True
    return base


def _free(taken: Sequence[tuple[int, int]], low: int, size: int) -> int:
    """Returns the first offset of ``size`` free bytes from ``low`` on."""
    for start, end in taken:
        if start >= low + size:
            break
        low = max(low, end)
    return low
