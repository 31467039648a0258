"""What users say of dimensions."""

from __future__ import annotations

import pytest

import landbridge as lb
from landbridge.errors import ShapeError
from landbridge.sizes.dim import declaration_of, dimension_of, identifier
from landbridge.sizes.printing import range_text
from landbridge.sizes.size import Size, expected_size


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (lb.Dim(32, 2560, multiple_of=8, likely=320), "32..2560:8@320"),
        (lb.Dim(30, 45, 8), "32..40:8"),
        ("32..2560:8@320", "32..2560:8@320"),
        ("1..7", "1..7"),
        (" 3.. ", f"3..{(1 << 31) - 1}"),
        (lb.Dim(), f"1..{(1 << 31) - 1}"),
    ],
)
def test_ranges(declared: lb.Dim | str, text: str) -> None:
    size = dimension_of("W", declared)
    assert isinstance(size, Size)
    assert range_text(size.symbols["W"]) == text
    assert dimension_of("W", text) == size


@pytest.mark.parametrize(
    "declared", [lb.Dim(32, 2560, 8, 320), lb.Dim(30, 45), lb.Dim(), lb.Dim(3), lb.Dim(8, None, 8, 64)]
)
def test_what_is_known_says_it_again(declared: lb.Dim) -> None:
    size = dimension_of("W", declared)
    assert isinstance(size, Size)
    assert declaration_of(size.symbols["W"]) == declared


def test_one_value_is_a_number() -> None:
    assert dimension_of("W", lb.Dim(48, 48)) == dimension_of("W", "48..48") == 48
    assert dimension_of("W", 48) == dimension_of("W", "48") == 48


@pytest.mark.parametrize(
    "declared",
    [
        lb.Dim(9, 3), lb.Dim(33, 39, 8), lb.Dim(1, 8, 0), lb.Dim(-1, 8), lb.Dim(1, 8, likely=9), lb.Dim(8, 64, 8, 12),
        -3, True, 1.5, None,
        lb.Dim(1, 8, likely=(3, 4)), lb.Dim(1.0, 8), lb.Dim(1, "8"),
        "x", "8:2", "1..x", "..3", "3..1", "8..64:0", "", "1..8:2:3",
    ],
)  # fmt: skip
def test_what_no_number_is(declared: lb.Dim | str) -> None:
    with pytest.raises(ShapeError, match="'W'"):
        dimension_of("W", declared)


def test_expected_is_in_the_range() -> None:
    assert expected_size(dimension_of("W", lb.Dim(32, 2560, 8, 320))) == 320
    assert expected_size(dimension_of("N", lb.Dim(4, 4096, 4))) % 4 == 0
    assert 1 <= expected_size(dimension_of("N", lb.Dim())) <= 64


@pytest.mark.parametrize(("name", "made"), [("W", "W"), ("p2o.Dim.0", "p2o_Dim_0"), ("0", "_0"), ("a b", "a_b")])
def test_identifiers(name: str, made: str) -> None:
    assert identifier(name) == made
