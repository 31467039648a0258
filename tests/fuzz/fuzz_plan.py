"""The planner: any bytes are buffers with pins and aliases; a plan passes the checker, or it is a PlanError.

``python tests/fuzz/fuzz_plan.py steps 100000`` plans that many random lists; other options are those of every target.
"""

from __future__ import annotations

import random
import sys
import time

from draw import EDGES, Draw

from landbridge import planner
from landbridge.errors import PlanError
from landbridge.planner import Alias, Buffer, Plan, lower_bound, plan
from landbridge.planner.conflicts import conflicts
from landbridge.planner.exact import tighten

INSTRUMENT = ("landbridge",)
SEEDS = [bytes([n, *(k * n % 251 for k in range(80))]) for n in (3, 37, 91, 148)] + [b""]

_SECONDS = 0.005


def check(data: bytes) -> None:
    draw = Draw(data)
    buffers: list[Buffer] = []
    for n in range(draw.below(12)):
        start = draw.below(8)
        size = EDGES[draw.below(len(EDGES))] if draw.below(16) == 0 else draw.below(40)
        alignment = 1 << draw.below(4)
        pin = draw.below(8) * alignment if draw.below(6) == 0 else None
        alias = Alias(draw.below(n + 1), draw.below(16), optional=draw.flag()) if draw.below(3) == 0 else None
        try:
            buffers.append(Buffer(n, size, alignment, start, start + draw.below(6), pin, alias))
        except PlanError:
            continue
    _check_plan(buffers, draw.below(128) if draw.flag() else None)
    if all(b.alias is None and b.offset is None for b in buffers):
        _check_exact(buffers)


def _check_plan(buffers: list[Buffer], capacity: int | None) -> None:
    try:
        found = plan(buffers, capacity, _SECONDS)
    except PlanError:
        return
    planner.check(buffers, found, capacity)
    assert lower_bound(buffers) <= found.lower_bound <= found.peak


def _check_exact(buffers: list[Buffer]) -> None:
    """The search alone, from the worst plan there is: each buffer above the last."""
    stacked, top = [], 0
    for b in buffers:
        top = -(-top // b.alignment) * b.alignment
        stacked.append(top)
        top += b.size
    deadline = time.perf_counter() + _SECONDS
    offsets, bound = tighten(buffers, conflicts(buffers), stacked, lower_bound(buffers), None, deadline)
    peak = max((at + b.size for at, b in zip(offsets, buffers, strict=True)), default=0)
    placed = {b.id: at for at, b in zip(offsets, buffers, strict=True)}
    planner.check(buffers, Plan(placed, peak, bound, False, 0.0))


def _steps(count: int) -> None:
    rng = random.Random(0)
    began = time.perf_counter()
    for _ in range(count):
        check(rng.randbytes(rng.randrange(140)))
    print(f"{count} lists of buffers in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["steps"]:
        _steps(int(sys.argv[2]))
    else:
        from harness import restart_under_atheris

        restart_under_atheris(__file__)
