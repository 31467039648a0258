"""The planner: plans are correct, near the bound, and refusals say why."""

from __future__ import annotations

import cProfile
import pstats
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.errors import PlanError
from landbridge.planner import Buffer, Plan, check, lower_bound, plan
from landbridge.planner.conflicts import conflicts
from landbridge.planner.csv_reader import read_csv
from landbridge.planner.greedy import ORDERS, Fit, peak, place
from landbridge.planner.sweep import pairs, sweep

TINY = Path(__file__).parent / "tiny.csv"


@st.composite
def _buffers(draw: st.DrawFn, most: int = 12) -> list[Buffer]:
    def one(i: int) -> Buffer:
        start = draw(st.integers(0, 12))
        return Buffer(
            i,
            size=draw(st.integers(0, 40)),
            alignment=draw(st.sampled_from([1, 1, 2, 8, 64])),
            start=start,
            end=start + draw(st.integers(1, 8)),
        )

    return [one(i) for i in range(draw(st.integers(0, most)))]


@given(_buffers())
def test_plans_are_correct_and_never_below_the_bound(buffers: list[Buffer]) -> None:
    result = plan(buffers, budget_seconds=0.01)
    check(buffers, result, capacity=result.peak)
    steps = {b.start for b in buffers}
    live = max((sum(b.size for b in buffers if b.start <= t < b.end) for t in steps), default=0)
    assert live <= result.lower_bound <= result.peak
    assert result.proved_optimal == (result.peak == result.lower_bound)


@given(_buffers(most=5))
def test_the_bound_holds_for_every_order(buffers: list[Buffer]) -> None:
    together = conflicts(buffers)
    for order in permutations(range(len(buffers))):
        placed = place(buffers, together, order, Fit.FIRST)
        assert placed is not None
        assert peak(buffers, placed) >= lower_bound(buffers)


@given(_buffers())
def test_any_change_that_breaks_a_plan_is_seen_by_the_checker(buffers: list[Buffer]) -> None:
    result = plan(buffers, budget_seconds=0)
    for b in buffers:
        for other in buffers:
            if b.id >= other.id or not (b.size and other.size) or b.end <= other.start or other.end <= b.start:
                continue
            moved = {**result.offsets, b.id: result.offsets[other.id]}
            with pytest.raises(PlanError):
                check(buffers, Plan(moved, result.peak, result.lower_bound, False, 0.0))


@given(_buffers(most=20))
def test_holes_alone_place_buffers_as_their_pairs_do(buffers: list[Buffer]) -> None:
    together = conflicts(buffers)
    assert pairs(buffers) == sum(map(len, together)) // 2
    order = sorted(range(len(buffers)), key=lambda i: ORDERS["start"](buffers[i]))
    for fit in Fit:
        assert sweep(buffers, fit) == place(buffers, together, order, fit)


def test_thousands_of_buffers_alive_together_need_no_list_of_pairs() -> None:
    buffers = [Buffer(i, 64 * (1 + i % 7), 64, i, 10_000 - i) for i in range(3000)]
    profile = cProfile.Profile()
    profile.enable()
    result = plan(buffers)
    profile.disable()
    assert result.peak == result.lower_bound == sum(b.size for b in buffers)
    # 4.5 million pairs are alive together.
    assert pstats.Stats(profile).total_calls < 100 * len(buffers)  # type: ignore[attr-defined]


@pytest.mark.parametrize("n", [30, 2500])
def test_buffers_alive_together_that_miss_the_bound_get_a_correct_plan(n: int) -> None:
    buffers = [Buffer(i, 5 + i % 3, 4 << i % 3, i % 2, n + i % 5) for i in range(n)]
    result = plan(buffers, budget_seconds=0)
    live = sum(b.size for b in buffers)
    assert live <= result.peak < 2.2 * live
    with pytest.raises(PlanError, match="overlap"):  # by one byte
        first, second = sorted(buffers, key=lambda b: result.offsets[b.id])[:2]
        moved = [replace(b, size=result.offsets[second.id] + 1) if b is first else b for b in buffers]
        check(moved, result)


def test_a_chain_needs_two_neighbours_at_once() -> None:
    chain = [Buffer(i, 100 + i, 1, i, i + 2) for i in range(20)]
    result = plan(chain)
    assert (result.peak, result.proved_optimal) == (118 + 119, True)


def test_lowest_first_and_search_reach_a_bound_that_size_order_misses() -> None:
    buffers = [
        Buffer("a", 3, 1, 0, 2), Buffer("b", 2, 1, 1, 4), Buffer("c", 4, 1, 2, 3),
        Buffer("d", 3, 1, 3, 6), Buffer("e", 1, 1, 0, 5), Buffer("f", 2, 1, 5, 7),
    ]  # fmt: skip
    result = plan(buffers)
    assert (result.peak, result.lower_bound, result.proved_optimal) == (7, 7, True)


def test_alignment_tightens_the_bound() -> None:
    buffers = [Buffer(i, 65, 64, 0, 1) for i in range(3)]
    result = plan(buffers)
    assert (result.peak, result.lower_bound, result.proved_optimal) == (128 + 128 + 65, 321, True)


def test_pins_hold_and_the_rest_goes_around_them() -> None:
    buffers = [Buffer("pin", 10, 1, 0, 4, offset=16), Buffer("x", 16, 1, 0, 4), Buffer("y", 5, 1, 2, 3)]
    result = plan(buffers)
    assert result.offsets == {"pin": 16, "x": 0, "y": 26}
    with pytest.raises(PlanError, match="'one' and 'two'"):
        plan([Buffer("one", 8, 1, 0, 2, offset=0), Buffer("two", 8, 1, 1, 3, offset=4)])
    separate = plan([Buffer("one", 8, 1, 0, 2, offset=0), Buffer("two", 8, 1, 2, 3, offset=4)])
    assert separate.peak == 12


def test_capacity_refusals_say_whether_any_plan_could_fit() -> None:
    buffers = [Buffer("big", 60, 1, 0, 2), Buffer("small", 50, 1, 1, 3)]
    assert plan(buffers, capacity=110).peak == 110
    with pytest.raises(PlanError, match=r"110 bytes are needed at once.*'big' \(60\), 'small' \(50\)"):
        plan(buffers, capacity=109)
    odd = [Buffer("a", 3, 1, 0, 2), Buffer("b", 2, 4, 0, 2), Buffer("c", 2, 4, 0, 2)]
    with pytest.raises(PlanError, match="the best needs 10, and 7 might do"):
        plan(odd, capacity=8, budget_seconds=0)
    with pytest.raises(PlanError, match="the search has shown that 9 are needed"):
        plan(odd, capacity=8)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"size": -1}, "0 or more bytes"),
        ({"alignment": 3}, "power of two"),
        ({"alignment": 0}, "power of two"),
        ({"end": 0}, "so never"),
        ({"offset": -8}, "multiple of its alignment"),
        ({"offset": 4, "alignment": 8}, "multiple of its alignment"),
    ],
)
def test_buffers_that_mean_nothing_are_refused(facts: dict[str, int], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        Buffer(**{"id": 0, "size": 1, "alignment": 1, "start": 0, "end": 1, **facts})


def test_ids_must_differ() -> None:
    with pytest.raises(PlanError, match="two buffers are called 'x'"):
        plan([Buffer("x", 1, 1, 0, 1), Buffer("x", 1, 1, 0, 1)])


@pytest.mark.parametrize(
    ("offsets", "declared_peak", "says"),
    [
        ({"a": 0, "b": 4}, 16, "stated peak"),
        ({"a": 0, "b": 3}, 11, "overlap"),
        ({"a": 0}, 8, "differ in"),
        ({"a": -1, "b": 8}, 16, "from 0 on"),
        ({"a": 0, "b": 8}, 12, "above the stated peak"),
    ],
)
def test_the_checker_rejects(offsets: dict[str | int, int], declared_peak: int, says: str) -> None:
    buffers = [Buffer("a", 4, 1, 0, 2), Buffer("b", 8, 1, 1, 3)]
    with pytest.raises(PlanError, match=says):
        check(buffers, Plan(offsets, declared_peak, 0, False, 0.0))


def test_the_checker_rejects_capacity_bound_and_pin() -> None:
    buffers = [Buffer("a", 4, 1, 0, 2, offset=0)]
    with pytest.raises(PlanError, match="the scope has 3"):
        check(buffers, Plan({"a": 0}, 4, 4, True, 0.0), capacity=3)
    with pytest.raises(PlanError, match="lower bound"):
        check(buffers, Plan({"a": 0}, 4, 5, True, 0.0))
    with pytest.raises(PlanError, match="pinned to 0"):
        check(buffers, Plan({"a": 4}, 8, 4, False, 0.0))


def test_five_hundred_buffers_without_any_search() -> None:
    buffers = [Buffer(i, 1 + i * 7919 % 4096, 64, i * 37 % 500, i * 37 % 500 + 1 + i % 23) for i in range(500)]
    result = plan(buffers, budget_seconds=0)
    assert result.peak <= 1.3 * result.lower_bound


def test_minimalloc_csv(tmp_path: Path) -> None:
    buffers = read_csv(TINY)
    assert [b.id for b in buffers] == ["a", "b", "c", "d", "e"]
    assert buffers[3] == Buffer("d", 4, 1, 9, 21)
    assert plan(buffers).peak == 12
    path = tmp_path / "aligned.csv"
    path.write_text("id,lower,upper,size,alignment,offset\n0,0,1,8,16,32\n1,0,1,8,,\n")
    assert read_csv(path) == [Buffer("0", 8, 16, 0, 1, offset=32), Buffer("1", 8, 1, 0, 1)]
    for text, says in [
        ("", "first line"),
        ("id,lower,upper,size\n1,2,x,4\n", "line 2"),
        ("id,lower,upper,size\n1,2\n", "line 2"),
    ]:
        path.write_text(text)
        with pytest.raises(PlanError, match=says):
            read_csv(path)
