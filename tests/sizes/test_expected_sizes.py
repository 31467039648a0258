"""Likely values of dimensions that models divide."""

from __future__ import annotations

import pytest

from landbridge.sizes.expected_sizes import expected_sizes
from landbridge.sizes.size import Extent, Size, clamped, dimension, expected_size


def symbol(name: str = "W", **facts: int) -> Size:
    made = dimension(name, **facts)
    assert isinstance(made, Size)
    return made


@pytest.mark.parametrize("by", [2, 8, 13, 64, 160, 512])
def test_a_divided_dimension_leaves_enough(by: int) -> None:
    w = symbol()
    found = expected_sizes([w, (w + 2) // by, 3 * (w // by)], ())
    assert expected_size(found["W"]) == 8 * by
    assert expected_size(found["W"] // by) == 8


def test_divisions_follow_each_other() -> None:
    w: Extent = symbol()
    for _ in range(3):
        w = (w - 1) // 2 + 1
    assert expected_size(expected_sizes([w], ())["W"]) == 64


def test_what_is_not_divided_or_is_declared_stays() -> None:
    w, declared, n = symbol(), symbol("V", expected=3), symbol("N")
    assert not expected_sizes([w, w + 4, 2 * w, clamped(w, 1, 5), declared // 8, 7], ())
    assert not expected_sizes([w // 8], ["W"])
    assert expected_size(expected_sizes([n * (w // 8)], ())["W"]) == 64


def test_a_range_that_has_no_such_value_stays() -> None:
    assert not expected_sizes([symbol(high=40) // 8], ())
    assert not expected_sizes([symbol(low=64) // 8], ())  # its likely value fills eight anyway
    assert not expected_sizes([symbol(multiple_of=32) // 32], ())


def test_the_value_is_a_multiple() -> None:
    assert expected_size(expected_sizes([symbol(multiple_of=3) // 8 // 7], ())["W"]) % 3 == 0


def test_no_division_of_a_signal_is_as_long() -> None:
    assert not expected_sizes([symbol() // 1000], ())
