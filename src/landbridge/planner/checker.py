"""Check a plan against its buffers. Shares no code with the planner: a fault there must not hide here."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.errors import PlanError
from landbridge.planner.buffers import Buffer, Plan


def check(buffers: Sequence[Buffer], plan: Plan, capacity: int | None = None) -> None:
    """Raise PlanError unless ``plan`` is a correct plan of ``buffers`` within ``capacity`` bytes.

    Looks at ids, offsets, alignments, pins, every pair of buffers, the peak, the bound and the claim.
    """
    _check_ids(buffers, plan)
    for b in buffers:
        offset = plan.offsets[b.id]
        if offset < 0 or offset % b.alignment != 0:
            raise PlanError(f"buffer {b.id!r} is at offset {offset}, not a multiple of {b.alignment} from 0 on")
        if b.offset is not None and offset != b.offset:
            raise PlanError(f"buffer {b.id!r} is pinned to {b.offset} and was placed at {offset}")
        if offset + b.size > plan.peak:
            raise PlanError(f"buffer {b.id!r} ends at {offset + b.size}, above the stated peak {plan.peak}")
    _check_pairs(buffers, plan)
    needed = max((plan.offsets[b.id] + b.size for b in buffers), default=0)
    if plan.peak != needed:
        raise PlanError(f"the stated peak is {plan.peak}, the offsets need {needed}")
    if capacity is not None and plan.peak > capacity:
        raise PlanError(f"the plan needs {plan.peak} bytes and the scope has {capacity}")
    if plan.lower_bound > plan.peak:
        raise PlanError(f"the stated lower bound {plan.lower_bound} is above the peak {plan.peak}")


def _check_ids(buffers: Sequence[Buffer], plan: Plan) -> None:
    ids = [b.id for b in buffers]
    if len(set(ids)) != len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise PlanError(f"two buffers are called {twice!r}; ids must differ")
    if set(ids) != set(plan.offsets):
        wrong = set(ids) ^ set(plan.offsets)
        raise PlanError(f"buffers and offsets differ in {sorted(map(str, wrong))[:5]}")


def _check_pairs(buffers: Sequence[Buffer], plan: Plan) -> None:
    earlier = sorted(buffers, key=lambda b: b.end)
    for n, b in enumerate(earlier):
        b_low = plan.offsets[b.id]
        b_high = b_low + b.size
        for other in earlier[n + 1 :]:
            if other.start >= b.end:
                continue
            low = plan.offsets[other.id]
            if low < b_high and b_low < low + other.size and b.size and other.size:
                raise PlanError(
                    f"buffers {b.id!r} (steps {b.start} to {b.end}, bytes {b_low} to {b_high}) and {other.id!r} "
                    f"(steps {other.start} to {other.end}, bytes {low} to {low + other.size}) overlap"
                )
