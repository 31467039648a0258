"""The sorting network by itself: its phases put any numbers in order, as numpy's sort does."""

from __future__ import annotations

import numpy as np
import pytest

from landbridge.ops.sort_network import phases


@pytest.mark.parametrize(("height", "columns"), [(2, 4), (8, 4), (16, 16), (64, 2)])
def test_phases_sort_column_by_column(height: int, columns: int) -> None:
    values = np.random.default_rng(0).integers(0, 40, (height, columns))
    want = np.sort(values, axis=None)
    row, column = np.indices(values.shape)
    for phase in phases(height, columns):
        line, along = (column, row) if phase.across else (row, column)
        for distance, owned in zip(phase.distance, phase.owned, strict=True):
            other = values[row, column ^ distance] if phase.across else values[row ^ distance, column]
            first = ((line & distance) == 0) ^ ((line & owned) != 0) ^ ((along & phase.other) != 0)
            values = np.where(first, np.minimum(values, other), np.maximum(values, other))
    np.testing.assert_array_equal(values.T.reshape(-1), want)
