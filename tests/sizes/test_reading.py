"""What was printed is read as it was, and other text has the value that it writes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.errors import ShapeError
from landbridge.sizes.parsing import parse_size
from landbridge.sizes.reading import read_parts
from landbridge.sizes.size import Extent, Size
from tests.sizes.test_size import SYMBOLS, Formula, formulas, values


@given(st.lists(formulas, min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_what_is_printed_is_read_back(given_: list[Formula]) -> None:
    parts: dict[str, Extent] = {}
    for formula in given_ * 2:
        extent = formula.extent
        assert read_parts(str(extent), SYMBOLS, parts) == extent == parse_size(str(extent), SYMBOLS)


_ATOMS = st.sampled_from(["W", "H", "N", "1", "2", "3", "40"])


def _written(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(" ".join),
        pair.map(lambda each: f"({each[0]} - {each[1]})"),
        st.tuples(inner, st.integers(1, 5)).map(lambda each: f"(({each[0]})//{each[1]})"),
        pair.map(lambda each: f"max({each[0]}, {each[1]})"),
        inner.map(lambda each: f"max(0, {each})"),
        pair.map(lambda each: f"min({each[0]},{each[1]})"),
        inner.map(lambda each: f"-({each})"),
        inner.map(lambda each: f"clamped({each}, 2, 50)"),
    )


@given(st.recursive(_ATOMS, _written, max_leaves=8), values)
@settings(max_examples=300, deadline=None)
def test_other_text_has_the_value_that_it_writes(text: str, at: Mapping[str, int]) -> None:
    def value(extent: Extent) -> int:
        return extent.at(at) if isinstance(extent, Size) else extent

    assert value(read_parts(text, SYMBOLS, {})) == value(parse_size(text, SYMBOLS))


@pytest.mark.parametrize(
    "text",
    ["", "W +", "(W", "W)", "V", "W // 0", "max()", "sum(W)", "W W", "3 / 2", "clamped(W, H)", "W ** 2", "1.5", "W/7"],
)
def test_what_is_none_is_refused_as_by_parse_size(text: str) -> None:
    with pytest.raises(ShapeError) as expected:
        parse_size(text, SYMBOLS)
    with pytest.raises(ShapeError) as found:
        read_parts(text, SYMBOLS, {})
    assert str(found.value) == str(expected.value)


def test_parts_are_read_once() -> None:
    parts: dict[str, Extent] = {}
    read_parts("2*((W + 3)//16) + max(0, H - ((W + 3)//16))", SYMBOLS, parts)
    assert {"(W + 3)", "((W + 3)//16)", "max(0, H - ((W + 3)//16))"} == parts.keys()
    parts["((W + 3)//16)"] = 5
    assert read_parts("1 + ((W + 3)//16)", SYMBOLS, parts) == 6
