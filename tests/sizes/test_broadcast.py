"""Shapes with open extents broadcast as numpy's do, whatever the sizes are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.errors import UndecidedSizeError
from landbridge.sizes.broadcast import broadcast_shapes, legal_extent, repeats
from landbridge.sizes.size import Extent, Size, dimension

W, N = dimension("W", 2, 64), dimension("N", 1, 9)
shapes = st.lists(st.lists(st.sampled_from([1, 1, 4, W, N, 2 * W, W + 1]), max_size=3), min_size=1, max_size=3)


def at(shape: list[Extent] | tuple[Extent, ...], values: dict[str, int]) -> tuple[int, ...]:
    return tuple(e.at(values) if isinstance(e, Size) else e for e in shape)


@given(shapes, st.integers(2, 64), st.integers(1, 9))
def test_as_numpy(drawn: list[list[Extent]], w: int, n: int) -> None:
    values = {"W": w, "N": n}
    try:
        found = broadcast_shapes(*drawn)
    except UndecidedSizeError:
        return
    except ValueError:
        with pytest.raises(ValueError, match="mismatch"):
            np.broadcast_shapes(*(at(s, values) for s in drawn))
        return
    assert at(found, values) == np.broadcast_shapes(*(at(s, values) for s in drawn))


def test_what_depends_on_the_input() -> None:
    with pytest.raises(UndecidedSizeError, match=r"W is 4|4 is W"):
        broadcast_shapes((3, W), (4,))
    with pytest.raises(ValueError, match="do not broadcast"):
        broadcast_shapes((W, 2 * W), (W, W))


B, C = dimension("B", 1, 6), dimension("C", 1, 6)
pairs = st.lists(st.lists(st.sampled_from([1, 4, B, C]), min_size=1, max_size=3), min_size=2, max_size=3)


@given(pairs, st.integers(1, 6), st.integers(1, 6))
def test_either_of_two_extents_may_be_one(drawn: list[list[Extent]], b: int, c: int) -> None:
    """The guards hold for just the sizes that numpy broadcasts, and the shape is then its."""
    values = {"B": b, "C": c}
    found = broadcast_shapes(*drawn, either=True)
    pairs = [(e, r) for shape in drawn for e, r in zip(reversed(shape), reversed(found), strict=False) if repeats(e, r)]
    legal = all(at([e], values) == at([legal_extent(e, r)], values) for e, r in pairs)
    try:
        wanted = np.broadcast_shapes(*(at(shape, values) for shape in drawn))
    except ValueError:
        assert not legal
        return
    assert legal
    assert at(found, values) == wanted
