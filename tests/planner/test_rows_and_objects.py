"""Rows of a scratchpad and whole objects: nothing is shared while in use, and as little is taken as can be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.errors import PlanError
from landbridge.planner import (
    ObjectPlan,
    ObjectRequest,
    RowBuffer,
    RowPlan,
    check_objects,
    check_rows,
    plan_objects,
    plan_rows,
)


@st.composite
def _rows(draw: st.DrawFn) -> list[RowBuffer]:
    starts = draw(st.lists(st.integers(0, 9), max_size=10))
    return [RowBuffer(i, draw(st.integers(0, 7)), 128, s, s + draw(st.integers(1, 5))) for i, s in enumerate(starts)]


@given(_rows(), st.booleans())
@settings(max_examples=80)
def test_rows(buffers: list[RowBuffer], contiguous: bool) -> None:
    found = plan_rows(buffers, None, 128, contiguous=contiguous, budget_seconds=0.02)
    check_rows(buffers, found, None, contiguous)
    live = max((sum(b.rows for b in buffers if b.start <= t < b.end) for t in range(16)), default=0)
    assert live <= found.lower_bound <= found.peak
    if not contiguous:
        assert found.peak == live


def test_a_table_needs_fewer_rows_than_a_pitch() -> None:
    # At step 2 rows 0 and 2 are free: enough for a table of rows, not for two that follow each other.
    buffers = [
        RowBuffer("a", 1, 64, 0, 2),
        RowBuffer("b", 1, 64, 0, 4),
        RowBuffer("c", 1, 64, 1, 2),
        RowBuffer("d", 2, 64, 2, 4),
    ]
    table = plan_rows(buffers, 3, 64, contiguous=False)
    assert (table.peak, sorted([*table.rows["b"], *table.rows["d"]])) == (3, [0, 1, 2])
    assert plan_rows(buffers, 3, 64, contiguous=True).peak == 3  # by putting b at an end


def test_rows_that_do_not_suffice() -> None:
    with pytest.raises(PlanError, match=r"rows of 129 bytes, and the scratchpad's have 128"):
        plan_rows([RowBuffer("a", 1, 129, 0, 1)], 4, 128, contiguous=True)
    two = [RowBuffer("a", 3, 8, 0, 1), RowBuffer("b", 3, 8, 0, 1)]
    for contiguous in (True, False):
        with pytest.raises(PlanError, match="no plan fits 5"):
            plan_rows(two, 5, 128, contiguous=contiguous)
    with pytest.raises(PlanError, match="so never"):
        plan_rows([RowBuffer("a", 3, 8, 1, 1)], 5, 128, contiguous=False)


def test_the_row_checker_rejects() -> None:
    two = [RowBuffer("a", 2, 8, 0, 2), RowBuffer("b", 1, 8, 1, 3)]
    for rows, contiguous, says in [
        ({"a": (0, 1), "b": (1,)}, True, r"share rows \[1\]"),
        ({"a": (0, 2), "b": (1,)}, True, "do not follow"),
        ({"a": (0, 0), "b": (1,)}, False, "needs 2 rows"),
        ({"a": (0, 1), "b": (3,)}, False, "below 3"),
    ]:
        with pytest.raises(PlanError, match=says):
            check_rows(two, RowPlan(rows, 3, 3), None, contiguous)
    with pytest.raises(PlanError, match="the scratchpad has 2"):
        check_rows(two, RowPlan({"a": (0, 1), "b": (2,)}, 3, 3), 2, True)


@st.composite
def _objects(draw: st.DrawFn) -> list[ObjectRequest]:
    starts = draw(st.lists(st.integers(0, 9), max_size=10))
    shape = st.tuples(st.integers(1, 8), st.integers(1, 8))
    dtype = st.sampled_from(["float16", "float32"])
    return [
        ObjectRequest(i, draw(shape), draw(dtype), 4, start, start + draw(st.integers(1, 5)))
        for i, start in enumerate(starts)
    ]


@given(_objects())
@settings(max_examples=80)
def test_objects(requests: list[ObjectRequest]) -> None:
    found = plan_objects(requests)
    check_objects(requests, found)
    assert found.lower_bound <= found.nbytes <= sum(r.nbytes for r in requests)


def test_an_object_is_used_again_only_by_what_fits() -> None:
    big = ObjectRequest("big", (8, 8), "float16", 2, 0, 2)
    later = ObjectRequest("later", (4, 8), "float16", 2, 2, 4)
    wide = ObjectRequest("wide", (1, 9), "float16", 2, 2, 4)
    other = ObjectRequest("other", (2, 2), "float32", 4, 4, 6)
    found = plan_objects([later, wide, other, big])
    assert found.uses["big"] == found.uses["later"]
    assert len({found.uses[r] for r in ("big", "wide", "other")}) == 3
    assert found.objects[found.uses["big"]] == ((8, 8), "float16")


def test_the_object_checker_rejects() -> None:
    a, b = ObjectRequest("a", (4,), "int8", 1, 0, 2), ObjectRequest("b", (4,), "int8", 1, 1, 3)
    with pytest.raises(PlanError, match="are the same"):
        check_objects([a, b], ObjectPlan([((4,), "int8")], {"a": 0, "b": 0}, 4, 8))
    with pytest.raises(PlanError, match="was given one of"):
        check_objects([a], ObjectPlan([((3,), "int8")], {"a": 0}, 3, 4))
    with pytest.raises(PlanError, match="nothing uses"):
        check_objects([a], ObjectPlan([((4,), "int8"), ((4,), "int8")], {"a": 0}, 8, 4))
    with pytest.raises(PlanError, match="two objects are called 'a'"):
        plan_objects([a, a])
    with pytest.raises(PlanError, match="so never"):
        ObjectRequest("c", (1,), "int8", 1, 3, 3)
