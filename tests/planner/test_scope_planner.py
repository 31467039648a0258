"""Places: capacities hold, what does not fit goes where it should, and no two places share anything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.errors import PlanError
from landbridge.planner import Alias, Buffer, Plan, ScopedPlan, ScopeLimits, check_scopes, plan, plan_scopes

FAST, SLOW, HOST = ("npu:0", "global.vtcm"), ("npu:0", "global"), ("cpu:0", "global")
LIMITS = {FAST: ScopeLimits(100, spill_to=SLOW), SLOW: ScopeLimits(1000, alignment=16, spill_to=HOST)}


def test_what_fits_stays() -> None:
    found = plan_scopes(
        {FAST: [Buffer("a", 60, 1, 0, 2), Buffer("b", 60, 1, 2, 3)], HOST: [Buffer("c", 9, 1, 0, 9)]}, LIMITS
    )
    assert found.spilled == {}
    assert {place: p.peak for place, p in found.plans.items()} == {FAST: 60, HOST: 9}


def test_the_largest_leaves_when_nothing_is_reported_of_uses() -> None:
    buffers = [Buffer("big", 70, 1, 0, 3), Buffer("small", 50, 1, 1, 2), Buffer("tiny", 5, 1, 0, 3)]
    found = plan_scopes({FAST: buffers}, LIMITS)
    assert found.spilled == {"big": SLOW}
    assert set(found.plans[FAST].offsets) == {"small", "tiny"}


def test_the_fewest_uses_a_byte_leave() -> None:
    buffers = [Buffer("big", 70, 1, 0, 3), Buffer("small", 50, 1, 1, 2), Buffer("tiny", 5, 1, 0, 3)]
    found = plan_scopes({FAST: buffers}, LIMITS, uses={"big": 70, "small": 20, "tiny": 1})
    assert found.spilled == {"tiny": SLOW, "small": SLOW} or found.spilled == {"small": SLOW}
    assert "big" in found.plans[FAST].offsets


def test_those_that_fit_again_come_back() -> None:
    # "first" leaves for step 0, then "second" for step 2; with both gone nothing is in the way of neither.
    buffers = [Buffer("first", 60, 1, 0, 1), Buffer("x", 50, 1, 0, 3), Buffer("second", 90, 1, 2, 4)]
    found = plan_scopes({FAST: buffers}, LIMITS, uses={"first": 1, "second": 90, "x": 5})
    assert found.spilled == {"x": SLOW} or found.spilled == {"first": SLOW, "x": SLOW}
    assert found.plans[FAST].peak <= 100


def test_spills_go_on_down_the_chain() -> None:
    found = plan_scopes({FAST: [Buffer("huge", 2000, 1, 0, 1)], SLOW: [Buffer("mid", 900, 1, 0, 1)]}, LIMITS)
    assert found.spilled == {"huge": HOST}
    assert found.plans[SLOW].offsets == {"mid": 0}


def test_views_go_with_what_they_view_and_optional_aliases_end_at_the_border() -> None:
    whole = Buffer("whole", 80, 1, 0, 3)
    view = Buffer("view", 8, 1, 1, 4, alias=Alias("whole", 8))
    result = Buffer("result", 70, 1, 2, 5, alias=Alias("whole", optional=True))
    other = Buffer("other", 30, 1, 0, 5)
    found = plan_scopes({FAST: [whole, view, result, other]}, LIMITS, uses={"other": 300, "result": 70})
    assert {"whole", "view"} <= set(found.spilled)
    assert found.plans[SLOW].offsets["view"] == found.plans[SLOW].offsets["whole"] + 8
    assert "result" in found.plans[FAST].offsets


def test_a_room_that_cannot_be_left_says_so() -> None:
    with pytest.raises(PlanError, match=r"scope 'global\.vtcm' of 'npu:0': no plan fits 100 bytes"):
        plan_scopes({FAST: [Buffer("a", 200, 1, 0, 1)]}, {FAST: ScopeLimits(100)})
    with pytest.raises(PlanError, match="no plan fits 100"):
        plan_scopes({FAST: [Buffer("a", 200, 1, 0, 1, offset=0)]}, LIMITS)  # pinned, so it stays


def test_rings_and_ids() -> None:
    with pytest.raises(PlanError, match="in a ring"):
        plan_scopes({}, {FAST: ScopeLimits(1, spill_to=SLOW), SLOW: ScopeLimits(1, spill_to=FAST)})
    with pytest.raises(PlanError, match="two buffers are called 'a'"):
        plan_scopes({FAST: [Buffer("a", 1, 1, 0, 1)], SLOW: [Buffer("a", 1, 1, 0, 1)]}, LIMITS)


@st.composite
def _buffers(draw: st.DrawFn) -> dict[tuple[str, str], list[Buffer]]:
    found: dict[tuple[str, str], list[Buffer]] = {FAST: [], SLOW: [], HOST: []}
    for i in range(draw(st.integers(0, 10))):
        start = draw(st.integers(0, 6))
        b = Buffer(i, draw(st.integers(0, 90)), draw(st.sampled_from([1, 8])), start, start + draw(st.integers(1, 4)))
        place = draw(st.sampled_from([FAST, FAST, SLOW, HOST]))
        if found[place] and draw(st.integers(0, 3)) == 0:
            of = draw(st.sampled_from(found[place]))
            b = replace(b, size=min(b.size, of.size), alias=Alias(of.id, optional=draw(st.booleans())))
        found[place].append(b)
    return found


@given(_buffers(), st.dictionaries(st.integers(0, 9), st.floats(0, 1e6)))
@settings(max_examples=60)
def test_any_buffers_find_a_place(buffers: dict[tuple[str, str], list[Buffer]], uses: dict[int, float]) -> None:
    found = plan_scopes(buffers, LIMITS, uses=dict(uses), budget_seconds=0.02)
    check_scopes(buffers, LIMITS, found)
    crowded = {place for place, p in found.plans.items() if place in found.spilled.values()}
    assert crowded <= {SLOW, HOST}


def test_the_checker_sees_a_wrong_place() -> None:
    a, b = Buffer("a", 60, 1, 0, 1), Buffer("b", 60, 1, 0, 1)
    alone = Plan({"a": 0}, 60, 60, True, 0.0)
    with pytest.raises(PlanError, match="in no scope, or in two"):
        check_scopes({FAST: [a, b]}, LIMITS, ScopedPlan({FAST: alone}))
    with pytest.raises(PlanError, match="planned in no scope, or in two"):
        check_scopes({FAST: [a]}, LIMITS, ScopedPlan({FAST: alone, SLOW: alone}))
    with pytest.raises(PlanError, match=r"asked for in .* and is planned in"):
        check_scopes({FAST: [a]}, LIMITS, ScopedPlan({HOST: alone}))  # not named as spilled
    with pytest.raises(PlanError, match="the scope has 100"):
        check_scopes({FAST: [a, b]}, LIMITS, ScopedPlan({FAST: plan([a, b])}))
