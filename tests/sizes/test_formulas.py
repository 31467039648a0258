"""SizeFormulas: many extents for many choices of dimensions give what each extent is for each choice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.sizes.formulas import SizeFormulas
from landbridge.sizes.size import Extent, Size, all_at, clamped, dimension, largest, smallest

N, W = dimension("n"), dimension("w", 8, 4096, 8)
_EXTENTS: st.SearchStrategy[Extent] = st.recursive(
    st.sampled_from([N, W, 0, 1, 7, -3]),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, by: a // by, inner, st.integers(1, 9)),
        st.builds(lambda a, by: (a + 5) // (by + 1), inner, st.sampled_from([N, W])),
        st.builds(lambda a, b: largest(a, b), inner, inner),
        st.builds(lambda a, b: smallest(a, b), inner, inner),
        st.builds(lambda a: clamped(a, 2, 30), inner),
    ),
    max_leaves=6,
)


@given(st.lists(_EXTENTS, min_size=1, max_size=6), st.lists(st.integers(1, 300), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_each_number_is_that_of_the_extent(extents: list[Extent], values: list[int]) -> None:
    found = SizeFormulas(extents).at_each({"n": np.array(values), "w": 64}, len(values))
    assert found.shape == (len(values), len(extents))
    for n, row in zip(values, found.tolist(), strict=True):
        at = {"n": n, "w": 64}
        assert row == all_at(extents, at) == [e.at(at) if isinstance(e, Size) else e for e in extents]


@pytest.mark.parametrize("extent", [N * N * N, N * N * N // 7, largest(N * N * N, 5), N + (1 << 62)])
def test_what_takes_more_than_64_bits_is_refused(extent: Extent) -> None:
    formulas = SizeFormulas([extent])
    with pytest.raises(OverflowError):
        formulas.at_each({"n": np.array([1, 1 << 40])}, 2)
