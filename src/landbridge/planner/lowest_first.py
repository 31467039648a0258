"""Lowest-first order: always places the buffer that can go lowest, so that the arena fills from the bottom up."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from landbridge.planner.buffers import Buffer
from landbridge.planner.greedy import Conflicts


def lowest_first(buffers: Sequence[Buffer], conflicts: Conflicts, order: Sequence[int]) -> list[int]:
    """Returns the order in which buffers fill the arena from the bottom, pinned ones first; ``order`` breaks ties.

    Holes below placed buffers are ignored here; placing the result with ``Fit.FIRST`` finds them.
    """
    floor = [0 if b.offset is None else -1 for b in buffers]
    lowest = [(floor[i], rank, i) for rank, i in enumerate(order)]
    rank = {i: r for r, i in enumerate(order)}
    heapify(lowest)
    waiting = set(order)
    chosen: list[int] = []
    while waiting:
        was, _, i = heappop(lowest)
        if i not in waiting or was != floor[i]:
            continue  # its offset has risen since: it is in the heap again
        waiting.remove(i)
        chosen.append(i)
        offset = buffers[i].offset
        end = (floor[i] if offset is None else offset) + buffers[i].size
        for j in conflicts[i]:
            if j in waiting and -1 < floor[j] < end:
                floor[j] = -(-end // buffers[j].alignment) * buffers[j].alignment
                heappush(lowest, (floor[j], rank[j], j))
    return chosen
