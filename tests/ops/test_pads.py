"""Pad by a tensor's own elements, of rows that are copied whole, against numpy."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from tests.ops.one_node import run_node

Mode = Literal["edge", "reflect", "wrap"]


@pytest.mark.sample(7)
@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize(
    ("shape", "low", "high"),
    [
        ((400,), (100,), (37,)),
        ((3, 5, 40), (0, 2, 1), (0, 1, 3)),
        ((2, 3, 33), (1, 0, 0), (0, 0, 70)),
        ((4, 64), (3, 5), (0, 0)),
    ],
)
def test_rows_are_continued_as_numpy_does(
    shape: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...], mode: Mode
) -> None:
    x: np.ndarray[Any, Any] = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (found,) = run_node("Pad", [x, np.array([*low, *high])], {1}, opset=19, mode=mode)
    np.testing.assert_array_equal(found, np.pad(x, list(zip(low, high, strict=True)), mode))
