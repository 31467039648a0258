"""Aliases: views lie where they must, optional ones share where it is legal, and bounds hold for every placement."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.errors import PlanError
from landbridge.planner import Alias, Buffer, Plan, check, lower_bound, plan


@st.composite
def _related(draw: st.DrawFn, most: int, tallest: int) -> list[Buffer]:
    """Buffers of which some are aliases of earlier or later ones, never past the end, never in a ring."""
    count = draw(st.integers(1, most))
    buffers: list[Buffer] = []
    for i in range(count):
        start = draw(st.integers(0, 4))
        b = Buffer(
            i, draw(st.integers(0, tallest)), draw(st.sampled_from([1, 1, 2])), start, start + draw(st.integers(1, 3))
        )
        if buffers and draw(st.booleans()):
            of = draw(st.sampled_from(buffers))
            offset = draw(st.integers(0, of.size))
            size = min(b.size, of.size - offset)
            b = replace(b, size=size, alias=Alias(of.id, offset, optional=draw(st.booleans())))
        buffers.append(b)
    return draw(st.permutations(buffers))


def _legal(buffers: list[Buffer], offsets: dict[str | int, int]) -> bool:
    peak = max(offsets[b.id] + b.size for b in buffers)
    try:
        check(buffers, Plan(offsets, peak, 0, False, 0.0))
    except PlanError:
        return False
    return True


@given(_related(most=10, tallest=30))
@settings(max_examples=200)
def test_plans_with_aliases_are_correct_and_not_below_the_bound(buffers: list[Buffer]) -> None:
    try:
        result = plan(buffers, budget_seconds=0.02)
    except PlanError as error:
        assert "cannot be placed" in str(error)  # a view at a byte its alignment forbids
        return
    check(buffers, result)
    assert lower_bound(buffers) <= result.lower_bound <= result.peak


@given(_related(most=4, tallest=3))
@settings(max_examples=200)
def test_the_bound_holds_for_every_legal_placement(buffers: list[Buffer]) -> None:
    capacity = sum(b.size for b in buffers) + 1
    bound = lower_bound(buffers)
    smallest = None
    for place in product(range(capacity), repeat=len(buffers)):
        offsets = {b.id: at for b, at in zip(buffers, place, strict=True)}
        peak = max(at + b.size for b, at in zip(buffers, place, strict=True))
        if (smallest is None or peak < smallest) and _legal(buffers, offsets):
            smallest = peak
    assert smallest is None or smallest >= bound
    if smallest is not None:
        try:
            result = plan(buffers, budget_seconds=0.05)
        except PlanError as error:
            assert "cannot be placed" in str(error)
            return
        assert result.peak >= smallest
        assert not result.proved_optimal or result.peak == smallest


def test_elementwise_results_take_the_place_of_their_operands() -> None:
    chain = [Buffer(i, 100, 4, i, i + 2, alias=Alias(i - 1, optional=True) if i else None) for i in range(10)]
    result = plan(chain)
    assert (result.peak, result.proved_optimal) == (100, True)
    assert plan([replace(b, alias=None) for b in chain]).peak == 200


def test_parts_of_a_concatenation_lie_in_the_whole() -> None:
    parts = [Buffer(i, 8, 4, 0, 2, alias=Alias("whole", 8 * i, optional=True)) for i in range(3)]
    result = plan([*parts, Buffer("whole", 24, 4, 1, 4)])
    assert (result.peak, result.proved_optimal) == (24, True)
    assert [result.offsets[i] - result.offsets["whole"] for i in range(3)] == [0, 8, 16]


def test_what_the_whole_does_not_need_yet_is_of_use_to_others() -> None:
    early = Buffer("early", 30, 4, 0, 1)  # lives where the second part will lie
    parts = [
        Buffer("first", 40, 4, 0, 3, alias=Alias("whole", 0, optional=True)),
        Buffer("second", 60, 4, 1, 3, alias=Alias("whole", 40, optional=True)),
    ]
    result = plan([early, *parts, Buffer("whole", 100, 4, 2, 5)])
    assert (result.peak, result.proved_optimal) == (100, True)


def test_an_operand_that_is_still_needed_is_not_overwritten() -> None:
    operand = Buffer("operand", 10, 1, 0, 5)
    view = Buffer("view", 10, 1, 0, 3, alias=Alias("operand"))
    result = Buffer("result", 10, 1, 2, 4, alias=Alias("view", optional=True))
    found = plan([operand, view, result])  # the view ends, but what it is a view of lives on
    assert found.offsets["view"] == found.offsets["operand"]
    assert abs(found.offsets["result"] - found.offsets["operand"]) >= 10
    overwriting = Plan({"operand": 0, "view": 0, "result": 0}, 10, 0, False, 0.0)
    with pytest.raises(PlanError, match="overlap"):
        check([operand, view, result], overwriting)


def test_two_results_do_not_share_one_operand() -> None:
    operand = Buffer("operand", 10, 1, 0, 2)
    results = [Buffer(i, 10, 1, 1, 3, alias=Alias("operand", optional=True)) for i in range(2)]
    assert plan([operand, *results]).peak == 20


@pytest.mark.parametrize(("operand_end", "view_start", "legal"), [(3, 2, True), (4, 2, False), (3, 1, False)])
def test_the_checker_knows_to_the_step_for_whom_an_alias_speaks(operand_end: int, view_start: int, legal: bool) -> None:
    buffers = [
        Buffer("operand", 10, 1, 0, operand_end),
        Buffer("taken", 10, 1, 0, 3, alias=Alias("operand")),
        Buffer("result", 10, 1, 2, 5, alias=Alias("taken", optional=True)),
        Buffer("view", 10, 1, view_start, 5, alias=Alias("result")),
    ]
    assert _legal(buffers, {b.id: 0 for b in buffers}) == legal


@pytest.mark.parametrize(("offset", "legal"), [(0, True), (4, True), (5, False), (-1, False)])
def test_the_checker_sees_an_alias_of_bytes_that_are_not_there(offset: int, legal: bool) -> None:
    buffers = [Buffer("all", 8, 1, 0, 2), Buffer("half", 4, 1, 1, 3, alias=Alias("all", offset))]
    assert _legal(buffers, {"all": 1, "half": 1 + offset}) == legal


def test_views_move_with_a_pin() -> None:
    result = plan([Buffer("all", 32, 8, 0, 4), Buffer("tail", 8, 8, 2, 6, offset=64, alias=Alias("all", 24))])
    assert result.offsets == {"all": 40, "tail": 64}


@pytest.mark.parametrize(
    ("buffers", "says"),
    [
        ([Buffer("a", 4, 1, 0, 1, alias=Alias("b"))], "no such buffer"),
        ([Buffer("a", 4, 1, 0, 1, alias=Alias("b", 2)), Buffer("b", 5, 1, 0, 1)], "bytes 2 to 6 of 'b', which has 5"),
        ([Buffer("a", 4, 1, 0, 1, alias=Alias("b")), Buffer("b", 4, 1, 0, 1, alias=Alias("a"))], "alias of itself"),
        ([Buffer("a", 4, 4, 0, 1, alias=Alias("b", 2)), Buffer("b", 8, 1, 0, 1)], "needs a multiple of 4"),
        (
            [Buffer("a", 4, 1, 0, 1, offset=8, alias=Alias("b")), Buffer("b", 8, 1, 0, 1, offset=4)],
            "pinned to bytes that do not agree",
        ),
        ([Buffer("a", 4, 1, 0, 1, offset=0, alias=Alias("b", 4)), Buffer("b", 8, 1, 0, 1)], "whole at byte -4"),
    ],
)
def test_aliases_that_cannot_be(buffers: list[Buffer], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        plan(buffers)


def test_the_checker_sees_a_view_out_of_place() -> None:
    buffers = [Buffer("all", 8, 1, 0, 2), Buffer("half", 4, 1, 1, 3, alias=Alias("all", 4))]
    with pytest.raises(PlanError, match="byte 4 and on of 'all'"):
        check(buffers, Plan({"all": 0, "half": 0}, 8, 8, True, 0.0))
    with pytest.raises(PlanError, match="claims to be optimal"):
        check(buffers, Plan({"all": 0, "half": 4}, 8, 4, True, 0.0))
