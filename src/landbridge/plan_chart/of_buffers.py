"""Arenas of the planner's own buffers, and back: to plan an arena again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from landbridge import planner
from landbridge.plan_chart.arena import Arena, ArenaBlock, Step
from landbridge.planner import Buffer, Plan


def arena_of_buffers(buffers: Sequence[Buffer], plan: Plan, capacity: int | None = None) -> Arena:
    """Returns the arena of ``buffers`` as ``plan`` places them.

    Times may lie far apart, so a step lasts from one time at which a buffer begins or ends to the next.
    """
    times = sorted({time for b in buffers for time in (b.start, b.end)})
    step_at = {time: step for step, time in enumerate(times)}
    blocks = [
        ArenaBlock(str(b.id), plan.offsets[b.id], b.size, b.alignment, step_at[b.start], step_at[b.end])
        for b in buffers
    ]
    return Arena(
        device="",
        scope="",
        peak=plan.peak,
        lower_bound=plan.lower_bound,
        proved_optimal=plan.proved_optimal,
        capacity=capacity,
        steps=tuple(Step(str(time), time) for time in times[:-1]),
        end_time=times[-1] if times else 0,
        blocks=tuple(blocks),
    )


def buffers_of(arena: Arena) -> list[Buffer]:
    """Returns the planner's input for ``arena``: its blocks by id, sizes in granules, without offsets."""
    return [Buffer(b.id, b.nbytes // arena.granule, b.alignment, b.start, b.end) for b in arena.blocks]


def replanned(arena: Arena, capacity: int | None, budget_seconds: float) -> tuple[Arena, float]:
    """Plans ``arena`` again from its blocks alone; returns it and the seconds that took.

    ``capacity`` in bytes. Raises PlanError as the planner does; where the scope has rows, its numbers are rows.
    """
    granule = arena.granule
    plan = planner.plan(buffers_of(arena), None if capacity is None else capacity // granule, budget_seconds)
    moved = replace(
        arena,
        peak=plan.peak * granule,
        lower_bound=plan.lower_bound * granule,
        proved_optimal=plan.proved_optimal,
        capacity=capacity,
        blocks=tuple(replace(block, offset=plan.offsets[block.id] * granule) for block in arena.blocks),
    )
    return moved, plan.seconds
