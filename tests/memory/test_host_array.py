"""Addresses of arrays, against numpy's own answers."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.array_utils import byte_bounds as numpy_byte_bounds

from landbridge.memory.host_array import _data_pointer_of, address_of, address_of_known, byte_bounds

FROZEN = np.frombuffer(b"12345678", np.int32)
GRID = np.arange(60, dtype=np.int16).reshape(3, 4, 5)


@pytest.mark.parametrize(
    "array",
    [
        GRID,
        GRID[1:, ::2, ::-1],
        GRID.T,
        FROZEN,
        np.zeros((), np.float64),
        np.zeros((0, 3)),
        np.zeros(3, ml_dtypes.bfloat16),
        np.broadcast_to(np.float32(1), (4, 4)),
        np.arange(4).view(np.recarray),
    ],
)
def test_against_numpy(array: np.ndarray[Any, Any]) -> None:
    assert address_of(array) == array.ctypes.data
    if array.size:
        assert byte_bounds(array) == numpy_byte_bounds(array)
    else:
        assert byte_bounds(array) == (array.ctypes.data, array.ctypes.data)


def test_only_arrays() -> None:
    with pytest.raises(TypeError, match="not bytes"):
        address_of(b"1234")  # type: ignore[arg-type]


def test_on_cpython_the_address_is_read_from_the_object() -> None:
    """Fails where numpy's objects get another layout: addresses are right then, and take four times as long."""
    if sys.implementation.name == "cpython":
        assert _data_pointer_of not in (address_of, address_of_known)
    assert address_of_known(GRID) == _data_pointer_of(GRID) == GRID.ctypes.data
