"""Plans a 2-D scratchpad: whole rows, consecutive (a pitch) or any free ones (a table of rows)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from landbridge.errors import PlanError
from landbridge.planner.buffers import Buffer, BufferId, RowBuffer, RowPlan
from landbridge.planner.checker import check_rows
from landbridge.planner.plan import plan


def plan_rows(
    buffers: Sequence[RowBuffer],
    rows: int | None,
    row_bytes: int,
    *,
    contiguous: bool,
    budget_seconds: float = 0.5,
) -> RowPlan:
    """Returns rows for ``buffers`` in a scratchpad of ``rows`` rows (None: unlimited) of ``row_bytes`` bytes.

    Two buffers that live at the same time never share a row. ``contiguous``: the rows of a buffer are consecutive, as a
    row pitch requires; the planner's search places them. Otherwise any rows will do, as a table of rows allows, and the
    plan is always optimal. Raises PlanError for a buffer wider than a row, one with an empty lifetime, or when the rows
    do not suffice.
    """
    for b in buffers:
        if b.row_bytes > row_bytes:
            raise PlanError(
                f"buffer {b.id!r} needs rows of {b.row_bytes} bytes, and the scratchpad's have {row_bytes}; "
                "tile its last axis, or use another scope"
            )
    flat = [Buffer(b.id, b.rows, 1, b.start, b.end) for b in buffers]
    if contiguous:
        found = plan(flat, rows, budget_seconds)
        taken = {b.id: range(found.offsets[b.id], found.offsets[b.id] + b.size) for b in flat}
        result = RowPlan(taken, found.peak, found.lower_bound)
        check_rows(buffers, result, rows, contiguous)
        return result
    table = _any_free(flat)
    peak = 1 + max((row for chosen in table.values() for row in chosen), default=-1)
    if rows is not None and peak > rows:
        raise PlanError(f"no plan fits {rows} rows: {peak} are needed at once; split the work or use a larger scope")
    result = RowPlan(table, peak, peak)
    check_rows(buffers, result, rows, contiguous)
    return result


def _any_free(buffers: Sequence[Buffer]) -> dict[BufferId, tuple[int, ...]]:
    """Assign the lowest free rows in order of start: a new row is taken only when all lower ones are in use."""
    free: list[int] = []
    ends: list[tuple[int, int]] = []  # (step from which it is free, row)
    row_count = 0
    chosen: dict[BufferId, tuple[int, ...]] = {}
    for b in sorted(buffers, key=lambda b: b.start):
        while ends and ends[0][0] <= b.start:
            heapq.heappush(free, heapq.heappop(ends)[1])
        taken = []
        for _ in range(b.size):
            if not free:
                heapq.heappush(free, row_count)
                row_count += 1
            taken.append(heapq.heappop(free))
        for row in taken:
            heapq.heappush(ends, (b.end, row))
        chosen[b.id] = tuple(taken)
    return chosen
