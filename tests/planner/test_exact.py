"""The exact search: optimal where it ends by itself, sound bounds where it does not, equal however it is run."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.planner import Buffer, Plan, check, lower_bound, plan
from landbridge.planner.conflicts import conflicts
from landbridge.planner.exact import kernel, tighten
from landbridge.planner.exact.compiled import compiled_search
from landbridge.planner.exact.orders import ORDERS, ranks
from landbridge.planner.exact.problem import scaled
from landbridge.planner.exact.racer import Racer
from landbridge.planner.greedy import Fit, place
from tests.planner.brute_force import smallest_peak

_PATIENCE = 60.0  # seconds no instance here comes near


@st.composite
def _tiny(draw: st.DrawFn) -> list[Buffer]:
    """Up to five buffers, so crowded that greedy orders often miss the optimum; some aligned, some pinned."""
    granule = draw(st.sampled_from([1, 1, 3, 64]))
    alignments = draw(st.sampled_from([[1], [1, 4], [4, 8], [64]]))

    def one(i: int) -> Buffer:
        start = draw(st.integers(0, 5))
        alignment = draw(st.sampled_from(alignments))
        pin = draw(st.one_of(st.none(), st.none(), st.none(), st.integers(0, 3)))
        return Buffer(
            i,
            size=granule * draw(st.integers(0, 9)),
            alignment=alignment,
            start=start,
            end=start + draw(st.integers(1, 4)),
            offset=None if pin is None else pin * alignment,
        )

    return [one(i) for i in range(draw(st.integers(1, 5)))]


def _stacked(buffers: list[Buffer]) -> list[int]:
    """Some plan, as bad as can be: a place of its own for each buffer, above every pin."""
    top = max((b.offset + b.size for b in buffers if b.offset is not None), default=0)
    offsets = []
    for b in buffers:
        offset = -(-top // b.alignment) * b.alignment if b.offset is None else b.offset
        offsets.append(offset)
        top = max(top, offset + b.size)
    return offsets


def _random(seed: int, count: int, tallest: int, steps: int) -> list[Buffer]:
    rng = random.Random(seed)
    starts = [rng.randrange(steps) for _ in range(count)]
    return [
        Buffer(i, rng.randint(1, tallest), 1, start, start + rng.randint(1, steps // 3))
        for i, start in enumerate(starts)
    ]


@given(_tiny())
@settings(max_examples=200)
def test_what_ends_by_itself_is_the_optimum(buffers: list[Buffer]) -> None:
    smallest = smallest_peak(buffers)
    if smallest is None:
        return
    offsets, bound = _tightened(buffers, compiled=False)
    reached = max(offset + b.size for b, offset in zip(buffers, offsets, strict=True))
    assert (reached, bound) == (smallest, smallest)
    check(buffers, Plan({b.id: o for b, o in zip(buffers, offsets, strict=True)}, reached, bound, True, 0.0))


def _tightened(buffers: list[Buffer], compiled: bool) -> tuple[list[int], int]:
    deadline = time.perf_counter() + _PATIENCE
    return tighten(
        buffers, conflicts(buffers), _stacked(buffers), lower_bound(buffers), None, deadline, compiled=compiled
    )


@pytest.mark.full
@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(6))
def test_compiled_and_interpreted_take_the_same_steps(seed: int) -> None:
    search = compiled_search()
    assert search is not None
    buffers = _random(seed, count=40, tallest=40, steps=24)
    found = scaled(buffers, conflicts(buffers))
    target = lower_bound(buffers)
    ends = []
    for run in (kernel.search, search):
        for name in ORDERS:
            racer = Racer(found.problem, ranks(found.problem, name), run, table_bits=8)
            racer.aim(target // found.unit, [(target - buffers[i].size) // found.unit for i in found.members])
            ends += [(racer.search(limit), racer.offsets()) for limit in (50, 300)]
    half = len(ends) // 2
    assert ends[:half] == ends[half:]


def test_it_finds_what_greedy_misses_at_the_bound() -> None:
    """A rectangle cut into buffers has a plan without a hole; greedy does not find it."""
    buffers = _cut(seed=3, steps=60, height=1000, cuts=60)
    together = conflicts(buffers)
    order = sorted(range(len(buffers)), key=lambda i: -buffers[i].size)
    greedy = place(buffers, together, order, Fit.FIRST)
    assert greedy is not None and max(o + b.size for o, b in zip(greedy, buffers, strict=True)) > 1000
    offsets, bound = tighten(buffers, together, greedy, 1000, None, time.perf_counter() + _PATIENCE, compiled=False)
    assert bound == 1000
    check(buffers, Plan({b.id: o for b, o in zip(buffers, offsets, strict=True)}, 1000, 1000, True, 0.0), 1000)


def _cut(seed: int, steps: int, height: int, cuts: int) -> list[Buffer]:
    """Buffers that tile ``steps`` x ``height`` exactly: guillotine cuts of the largest piece, shuffled."""
    rng = random.Random(seed)
    pieces = [(0, steps, height)]
    while len(pieces) < cuts:
        start, end, tall = pieces.pop(
            max(range(len(pieces)), key=lambda i: (pieces[i][1] - pieces[i][0]) * pieces[i][2])
        )
        if rng.random() < 0.5 and end - start > 1:
            at = rng.randint(start + 1, end - 1)
            pieces += [(start, at, tall), (at, end, tall)]
        else:
            low = rng.randint(1, tall - 1)
            pieces += [(start, end, low), (start, end, tall - low)]
    rng.shuffle(pieces)
    return [Buffer(i, tall, 1, start, end) for i, (start, end, tall) in enumerate(pieces)]


def test_a_deadline_in_the_past_changes_nothing() -> None:
    buffers = _random(1, count=30, tallest=40, steps=20)
    stacked = _stacked(buffers)
    assert tighten(buffers, conflicts(buffers), stacked, lower_bound(buffers), None, time.perf_counter()) == (
        stacked,
        lower_bound(buffers),
    )


def test_a_capacity_is_met_before_the_rest_is_tightened() -> None:
    buffers = _cut(seed=5, steps=40, height=600, cuts=40)
    stacked = _stacked(buffers)
    deadline = time.perf_counter() + _PATIENCE
    offsets, _ = tighten(buffers, conflicts(buffers), stacked, 1, 700, deadline, compiled=False)
    assert max(o + b.size for o, b in zip(offsets, buffers, strict=True)) <= 700


@pytest.mark.full
def test_bytes_beyond_64_bits_are_interpreted() -> None:
    buffers = [Buffer(i, size << 70, 4 << 70, 0, 1) for i, size in enumerate((3, 2, 2))]
    offsets, bound = _tightened([*buffers, Buffer(3, 3 << 70, 1, 0, 1)], compiled=True)
    assert bound == max(o + b.size for o, b in zip(offsets, [*buffers, Buffer(3, 3 << 70, 1, 0, 1)], strict=True))


def test_short_budgets_load_no_compiler() -> None:
    """What `lb.compile` gives a plan: its search runs, and neither numba nor numpy arrays come into it."""
    program = (
        "import sys\n"
        "from landbridge.planner import Buffer, plan\n"
        "odd = [Buffer('a', 3, 1, 0, 2), Buffer('b', 2, 4, 0, 2), Buffer('c', 2, 4, 0, 2)]\n"
        "found = plan(odd)\n"
        "assert found.proved_optimal and found.lower_bound == 9, found\n"
        "assert not {'numba', 'llvmlite'} & set(sys.modules)\n"
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr


@pytest.mark.full
def test_two_threads_give_the_same_plan_each_time() -> None:
    buffers = _cut(seed=11, steps=60, height=800, cuts=90)
    first, bound = _tightened(buffers, compiled=True)
    assert bound == 800 == max(o + b.size for o, b in zip(first, buffers, strict=True))
    for _ in range(4):
        assert _tightened(buffers, compiled=True) == (first, bound)


def test_a_goal_is_good_enough() -> None:
    buffers = _cut(seed=3, steps=60, height=1000, cuts=60)
    greedy = plan(buffers, budget_seconds=0).peak
    assert greedy > 1000
    assert plan(buffers, budget_seconds=_PATIENCE, goal=greedy).peak == greedy
    assert plan(buffers, budget_seconds=_PATIENCE, goal=1100).peak <= 1100
