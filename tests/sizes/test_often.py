"""Likely values of dimensions that models divide."""

from __future__ import annotations

import pytest

from landbridge.sizes.often import often
from landbridge.sizes.size import Extent, Size, clamped, dimension, likely


def symbol(name: str = "W", **facts: int) -> Size:
    made = dimension(name, **facts)
    assert isinstance(made, Size)
    return made


@pytest.mark.parametrize("by", [2, 8, 13, 64, 160, 512])
def test_a_divided_dimension_leaves_enough(by: int) -> None:
    w = symbol()
    found = often([w, (w + 2) // by, 3 * (w // by)], ())
    assert likely(found["W"]) == 8 * by
    assert likely(found["W"] // by) == 8


def test_divisions_follow_each_other() -> None:
    w: Extent = symbol()
    for _ in range(3):
        w = (w - 1) // 2 + 1
    assert likely(often([w], ())["W"]) == 64


def test_what_is_not_divided_or_is_stated_stays() -> None:
    w, stated, n = symbol(), symbol("V", often=3), symbol("N")
    assert not often([w, w + 4, 2 * w, clamped(w, 1, 5), stated // 8, 7], ())
    assert not often([w // 8], ["W"])
    assert likely(often([n * (w // 8)], ())["W"]) == 64


def test_a_range_that_has_no_such_value_stays() -> None:
    assert not often([symbol(high=40) // 8], ())
    assert not often([symbol(low=64) // 8], ())  # its likely value fills eight anyway
    assert not often([symbol(multiple_of=32) // 32], ())


def test_the_value_is_a_multiple() -> None:
    assert likely(often([symbol(multiple_of=3) // 8 // 7], ())["W"]) % 3 == 0


def test_no_division_of_a_signal_is_as_long() -> None:
    assert not often([symbol() // 1000], ())
