"""Checks a plan of rows. It shares no code with the planner."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

from landbridge.errors import PlanError
from landbridge.planner.buffers import RowBuffer, RowPlan


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
