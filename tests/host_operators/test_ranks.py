"""Running extremes and the most frequent element against loops."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from landbridge.host_operators.ranks import cum_max, cum_min, mode

X = np.random.default_rng(0).integers(0, 4, (3, 9, 2))


def rows_of(x: np.ndarray, axis: int) -> list[list[int]]:
    return np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_of_each_axis(axis: int) -> None:
    for function, best in ((cum_max, max), (cum_min, min)):
        values, places = (rows_of(found, axis) for found in function(X, axis=axis))
        for row, found, at in zip(rows_of(X, axis), values, places, strict=True):
            assert found == [best(row[: end + 1]) for end in range(len(row))]
            assert at == [max(i for i in range(end + 1) if row[i] == found[end]) for end in range(len(row))]
    values, places = (rows_of(found, axis) for found in mode(X, axis=axis))
    for row, (found,), (at,) in zip(rows_of(X, axis), values, places, strict=True):
        times = Counter(row)
        assert found == min(number for number in times if times[number] == max(times.values()))
        assert at == max(i for i in range(len(row)) if row[i] == found)


def test_what_is_no_number_stays() -> None:
    values, places = cum_min(np.array([1, np.nan, 0, np.nan]), axis=0)
    np.testing.assert_array_equal(values, [1, np.nan, np.nan, np.nan])
    assert places.tolist() == [0, 1, 1, 3]
