"""Conflicts: buffers that may not share bytes, because they live at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.planner.buffers import Buffer


def conflicts(buffers: Sequence[Buffer]) -> list[list[int]]:
    """Returns for each buffer the indices of those that live at some step of its life; empty buffers conflict with
    none."""
    found: list[list[int]] = [[] for _ in buffers]
    alive: list[int] = []
    for i in sorted((i for i, b in enumerate(buffers) if b.size), key=lambda i: buffers[i].start):
        start = buffers[i].start
        alive = [j for j in alive if buffers[j].end > start]
        found[i].extend(alive)
        for j in alive:
            found[j].append(i)
        alive.append(i)
    return found
