"""Ranges in which a question is settled: for every value in them the answer is the one that is stated."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.errors import UndecidedSizeError
from landbridge.sizes.broadcast import broadcast_shapes
from landbridge.sizes.printing import range_text
from landbridge.sizes.question import Question
from landbridge.sizes.replaced import replaced
from landbridge.sizes.settle import Settled, settled
from landbridge.sizes.size import Extent, Size, dimension
from landbridge.sizes.terms import constant, evaluate

H, W = dimension("H"), dimension("W", 8, 4096, 8, expected=320)


def _values(extent: Extent) -> list[int]:
    """The ends of a range and some between."""
    if isinstance(extent, int):
        return [extent]
    ((_, symbol),) = extent.symbols.items()
    high = symbol.low + 1000 if symbol.high is None else symbol.high
    units = {symbol.low, high, *range(symbol.low, min(symbol.low + 70, high + 1)), (symbol.low + high) // 2}
    return [symbol.unit * number for number in units]


def _is(question: Question, values: dict[str, int]) -> bool:
    difference = evaluate(question.difference, lambda symbol: values[symbol.name])
    return difference == 0 if question.equal else difference >= 0


def _question(
    left: Extent, right: Extent, *, equal: bool = False, needed: bool = False, broadcasts: bool = False
) -> Question:
    difference = left - right
    terms = difference.terms if isinstance(difference, Size) else constant(difference)
    return Question(terms, equal, needed, broadcasts)


def _quotients(of: Extent) -> st.SearchStrategy[Extent]:
    number = st.integers(1, 64)
    return st.builds(lambda plus, by, times, minus: times * ((of + plus) // by) - minus, number, number, number, number)


@settings(max_examples=60, deadline=None)
@given(_quotients(H), st.one_of(_quotients(H), st.integers(-3, 40)), st.booleans())
def test_what_is_settled_is_so(left: Extent, right: Extent, equal: bool) -> None:
    question = _question(left, right, equal=equal)
    for found in settled(question, {}):
        assert found.name == "H"
        for value in _values(found.extent):
            assert _is(question, {"H": value}) == found.answer, found


@pytest.mark.parametrize(
    ("question", "ranges"),
    [
        # a window needs an image that it fits in
        (_question((H + 31) // 64, 1), ["33..2147483647 True", "1..32 False", "64..2147483584:64 True"]),
        # halves of a half that come together again
        (
            _question(2 * ((H + 31) // 32), (H + 15) // 16, equal=True, needed=True),
            ["32..2147483616:32 True", "2147483633..2147483647 True"],
        ),
        (_question(H + 55, 100_000), ["1..99944 False", "99945..2147483647 True"]),
        (
            _question((W + 15) // 48, 1, equal=True),
            ["88..4096:8@320 False", "8..32:8 False", "40..80:8 True", "48 True"],
        ),
        (_question(H, 7, equal=True, needed=True), ["7 True"]),
    ],
)
def test_the_widest_comes_first(question: Question, ranges: list[str]) -> None:
    found = settled(question, {})
    assert [f"{_text(each)} {each.answer}" for each in found] == ranges
    assert not settled(question, {"H": H, "W": W})


def _text(found: Settled) -> str:
    if isinstance(found.extent, int):
        return str(found.extent)
    return range_text(found.extent.symbols[found.name])


def test_errors_carry_the_question() -> None:
    with pytest.raises(UndecidedSizeError) as ordered:
        bool(H > 3)
    assert ordered.value.question == _question(3, H)
    with pytest.raises(UndecidedSizeError) as broadcast:
        broadcast_shapes((H,), (W,))
    assert broadcast.value.question == _question(W, H, equal=True, needed=True, broadcasts=True)


@given(_quotients(H), st.integers(1, 500))
def test_replaced_by_a_number(extent: Extent, number: int) -> None:
    if isinstance(extent, Size):
        assert replaced(extent.terms, {"H": number}) == extent.at({"H": number})
        assert replaced(extent.terms, {"W": number}) == extent
