"""Sizes compute as ints do, for every value of their dimensions, and what is decided of them holds for all."""

from __future__ import annotations

import math
import operator
import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.errors import ShapeError, UndecidedSizeError
from landbridge.sizes.parsing import parse_size
from landbridge.sizes.printing import written
from landbridge.sizes.size import (
    Extent,
    Size,
    always_at_least,
    as_one,
    at_least,
    ceildiv,
    clamped,
    dimension,
    largest,
    never_at_least,
    never_below,
    product,
    same,
    smallest,
)

W = dimension("W", 32, 2560, 8)
H = dimension("H", 1, 64)
N = dimension("N")
DIMENSIONS = {"W": range(32, 2561, 8), "H": range(1, 65), "N": range(1, 10_000)}
SYMBOLS = {name: symbol for size in (W, H, N) if isinstance(size, Size) for name, symbol in size.symbols.items()}

values = st.fixed_dictionaries({name: st.sampled_from(legal) for name, legal in DIMENSIONS.items()})


@dataclass(frozen=True)
class Formula:
    """One computation, on Sizes and on the numbers that they are."""

    extent: Extent
    number: Callable[[Mapping[str, int]], int]


def _binary(operation: Callable[[Any, Any], Any]) -> Callable[[Formula, Formula], Formula]:
    def apply(a: Formula, b: Formula) -> Formula:
        return Formula(operation(a.extent, b.extent), lambda v: operation(a.number(v), b.number(v)))

    return apply


def _by(operation: Callable[[Any, Any], Any]) -> Callable[[Formula, int], Formula]:
    return lambda a, by: Formula(operation(a.extent, by), lambda v: operation(a.number(v), by))


def _largest(a: Formula, b: Formula) -> Formula:
    return Formula(largest(a.extent, b.extent), lambda v: max(a.number(v), b.number(v)))


def _smallest(a: Formula, b: Formula) -> Formula:
    return Formula(smallest(a.extent, b.extent), lambda v: min(a.number(v), b.number(v)))


def _ceildiv(a: Formula, by: int) -> Formula:
    return Formula(ceildiv(a.extent, by), lambda v: -(-a.number(v) // by))


_leaf = st.one_of(
    st.sampled_from([Formula(size, operator.itemgetter(name)) for name, size in (("W", W), ("H", H), ("N", N))]),
    st.integers(-40, 40).map(lambda n: Formula(n, lambda v: n)),
)


def _grow(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    both = [operator.add, operator.sub, operator.mul]
    divisors = st.integers(-12, 12).filter(bool)
    return st.one_of(
        *(st.builds(_binary(operation), inner, inner) for operation in both),
        *(st.builds(_by(operation), inner, divisors) for operation in (operator.floordiv, operator.mod)),
        st.builds(
            lambda a, b: Formula(largest(a.extent, b.extent), lambda v: max(a.number(v), b.number(v))), inner, inner
        ),
        st.builds(
            lambda a, b: Formula(smallest(a.extent, b.extent), lambda v: min(a.number(v), b.number(v))), inner, inner
        ),
        st.builds(
            lambda a, b: Formula(ceildiv(a.extent, b), lambda v: -(-a.number(v) // b)), inner, st.integers(1, 12)
        ),
    )


formulas = st.recursive(_leaf, _grow, max_leaves=7)


def at(extent: Extent, v: Mapping[str, int]) -> int:
    return extent.at(v) if isinstance(extent, Size) else extent


@settings(max_examples=300)
@given(formulas, st.lists(values, min_size=1, max_size=5))
def test_computes_as_ints_do(formula: Formula, points: list[dict[str, int]]) -> None:
    for v in points:
        assert at(formula.extent, v) == formula.number(v)


@settings(max_examples=300)
@given(formulas, st.lists(values, min_size=1, max_size=5))
def test_bounds_hold(formula: Formula, points: list[dict[str, int]]) -> None:
    if isinstance(formula.extent, Size):
        low, high = formula.extent.low, formula.extent.high
        for v in points:
            assert low is None or low <= formula.number(v)
            assert high is None or high >= formula.number(v)


@given(formulas)
def test_prints_and_parses(formula: Formula) -> None:
    assert parse_size(str(formula.extent), SYMBOLS) == formula.extent


@settings(max_examples=300)
@given(formulas, formulas, st.lists(values, min_size=1, max_size=5))
def test_what_is_decided_holds(a: Formula, b: Formula, points: list[dict[str, int]]) -> None:
    ordered, equal = at_least(a.extent, b.extent), same(a.extent, b.extent)
    for v in points:
        assert ordered is None or ordered == (a.number(v) >= b.number(v))
        assert equal is None or equal == (a.number(v) == b.number(v))


@given(formulas, formulas)
def test_sums_and_products_have_one_form(a: Formula, b: Formula) -> None:
    x, y = a.extent, b.extent
    assert x + y == y + x and x * y == y * x
    assert (x + y) - y == x
    assert (x + y) * (x - y) == x * x - y * y
    if isinstance(x, Size):
        assert pickle.loads(pickle.dumps(x)) == x and hash(pickle.loads(pickle.dumps(x))) == hash(x)


@pytest.mark.parametrize(
    ("extent", "text"),
    [
        (W // 8, "W/8"),
        (3 * W // 4, "3*W/4"),
        ((W + 15) // 8, "W/8 + 1"),
        ((W - 1) // 2 + 1, "W/2"),
        ((H + 1) // 2, "((H + 1)//2)"),
        (((H + 1) // 2 + 1) // 2, "((H + 3)//4)"),
        (H * W // H, "W"),
        (H * W // (H * 8), "W/8"),
        (product([N, 3, H, W]) // W, "3*H*N"),
        (largest(W, 8), "W"),
        (smallest(H, 100), "H"),
        (largest(W, H), "W + max(0, H - W)"),
        (-H // 3, "-((H + 2)//3)"),
        (W % 8, "0"),
        (4 * H % 6, "4*H - 6*((2*H)//3)"),
        (W * W // 32, "W*W/32"),
    ],
)
def test_forms(extent: Extent, text: str) -> None:
    assert str(extent) == text


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (W, 32),
        (2560, W),
        (H * N, N),
        (H * N + N, N + H),
        (H, (H + 1) // 2),
        (W // 8, 4),
        ((H - 1) // 2 + 1, 1),
        (H, smallest(H, 7)),
        (3 * H // 4, 3 * H // 4 // 6 * 6),
        (2 * ((H + 3) // 7), 2 * H // 7),
        ((3 * H + 5) // 4 + 2, (3 * H + 5) // 4 // 9 * 9),
    ],
)
def test_decided(left: Extent, right: Extent) -> None:
    assert left >= right and not left < right and right <= left


@pytest.mark.parametrize(
    "question", [lambda: W > 32, lambda: H == 1 or bool(H - 1), lambda: H >= W, lambda: list(range(H))]
)
def test_undecided_is_an_error(question: Callable[[], object]) -> None:
    with pytest.raises(UndecidedSizeError, match=r"[WH] in \d+\.\.\d+"):
        question()


def test_a_clamp_that_changes_nothing_is_what_it_clamps() -> None:
    total, capacity = dimension("total", -8), dimension("C")
    least = smallest(clamped(total, 1), capacity)
    assert same(as_one(least, 0, 1 << 31), least) is True
    assert same(3 * as_one(least, 0, 1 << 31) + 1, 3 * least + 2) is False
    assert same(as_one(least, 2), least) is None  # it is 2 where the other is 1


def test_one_value_is_a_number() -> None:
    assert dimension("W", 30, 39, 8) == 32
    with pytest.raises(ValueError, match="no multiple of 8 is in 33 to 39"):
        dimension("W", 33, 39, 8)


def test_a_size_is_no_number() -> None:
    assert H != 1 and math.inf != W
    with pytest.raises(TypeError):
        H + 1.5  # type: ignore[operator]
    with pytest.raises(ZeroDivisionError):
        H // 0
    with pytest.raises(UndecidedSizeError, match="the divisor may be 0"):
        W // (H - 1)


@pytest.mark.parametrize(
    "text", ["", "W +", "W ** 2", "W / 3", "1.5", "True", "V", "W // 0", "max()", "W if H else 1", "(" * 500]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ShapeError):
        parse_size(text, SYMBOLS)


@pytest.mark.parametrize("by", [2, 3, 6, 441])
@pytest.mark.parametrize("factor", [1, 8, 48])
def test_a_quotient_that_is_rounded_up_is_at_most_one_more_however_often_both_are_taken(by: int, factor: int) -> None:
    up, down = ceildiv(N, by), N // by
    assert at_least(factor * down + factor, factor * up) is True
    assert at_least(factor * up, factor * down) is True
    assert at_least(factor * down, factor * up) is None


def test_an_extent_that_is_a_minimum_is_bounded_where_it_is_multiplied_and_divided() -> None:
    steps = N // 64
    short = dimension("S", 1, 100_004)
    a_few = smallest(short, 100_000) - largest(short - 5, 0)  # the last five of at most 100000
    assert always_at_least(16 * (H * a_few // 16), 0)
    assert not always_at_least(16 * (H * a_few // 16), 1)
    padded = 3 * steps - 2 * largest(steps - 4, 0)
    whole = dimension("T", 192)
    grown = 3 * (whole // 64) - 2 * largest(whole // 64 - 4, 0)
    assert always_at_least(grown + 8 * (grown // 8), 17)
    assert not always_at_least(padded, 1)  # 0 for fewer than 64


def test_no_product_is_reported_to_exceed_what_memory_has() -> None:
    area = dimension("h", 1, None) * dimension("w", 1, None) * dimension("d", 1, None)
    assert never_below(area) == never_below(dimension("h", 1, None) * 2**40) == 1 << 62
    assert never_below(dimension("h", 1, 100) * 3) == 300


def test_what_is_refuted() -> None:
    assert never_at_least(3, 4) and not never_at_least(4, 4)
    assert never_at_least(0, N) and not never_at_least(N, 0)
    assert never_at_least(N - H, N + 1)  # for no height
    for left, right in ((N, H), (N, 5), (5, N), (N + H, N), (-N, 0), (N // 3, N)):
        assert never_at_least(left, right) is (at_least(left, right) is False)


def test_written_counts_what_the_text_has() -> None:
    n, m = dimension("n"), dimension("m")
    nested = smallest(n * m + 3, 7 * m)
    assert isinstance(nested, Size)
    shown = len(re.findall(r"\w+", str(nested).replace("max", "")))
    assert shown <= written(nested.terms) <= 2 * shown
    for number in range(40):
        nested = smallest(nested, nested * m - 2 * number - 5)
    assert isinstance(nested, Size)
    assert written(nested.terms) > 1 << 40  # the text itself cannot be made
