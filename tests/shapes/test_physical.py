"""Which axes make which dimension of a space, against numpy's own idea of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.errors import InputError
from landbridge.memory_kind import MemoryKind
from landbridge.shapes.physical import nd_bytes, physical_shape, row_bytes, row_strides, separators_for

ROWS = MemoryKind("rows", "none", True, ndim=2, row_alignment=64)
IMAGE = MemoryKind("image", "none", True, ndim=3)


def test_a_4d_tensor_in_two_dimensions() -> None:
    assert physical_shape((2, 3, 4, 5), (2,)) == (6, 20)
    assert physical_shape((2, 3, 4, 5), (1, 3)) == (2, 12, 5)
    assert physical_shape((7,), (0,)) == (1, 7)
    assert physical_shape((7,), (1,)) == (7, 1)
    assert physical_shape((7,), ()) == (7,)


@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=4), data=st.data())
def test_strides_walk_the_rows(shape: list[int], data: st.DataObject) -> None:
    separator = data.draw(st.integers(0, len(shape)))
    rows, columns = physical_shape(shape, (separator,))
    pitch = columns + data.draw(st.integers(0, 3))
    memory = np.full((rows, pitch), -1)
    memory[:, :columns] = np.arange(rows * columns).reshape(rows, columns)
    strides = row_strides(shape, (separator,), pitch)
    seen = np.lib.stride_tricks.as_strided(memory, shape, [s * memory.itemsize for s in strides])
    np.testing.assert_array_equal(seen, np.arange(rows * columns).reshape(shape))


def test_bytes_round_each_row_up() -> None:
    assert row_bytes((3, 5, 4), "float32") == 80
    assert nd_bytes(ROWS, (3, 5), "float32") == 3 * 64
    assert nd_bytes(replace(ROWS, row_alignment=1), (3, 5), "float32") == 60
    assert nd_bytes(ROWS, (3, 0), "float32") == 3 * 64
    assert nd_bytes(ROWS, (0, 5), "float32") == 0


def test_separators_left_out() -> None:
    assert separators_for((4, 5), None, ROWS) == (1,)
    assert separators_for((4, 5, 6), None, IMAGE) == (1, 2)
    assert separators_for((4, 5, 6), None, replace(ROWS, ndim=1)) == ()
    with pytest.raises(InputError, match=r"2 dimensions and a tensor of shape .* has 3"):
        separators_for((4, 5, 6), None, ROWS)


@pytest.mark.parametrize("separators", [(-1,), (4,), (1, 1), (2, 1), ("a",)])
def test_separators_out_of_order(separators: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="axis_separators"):
        separators_for((4, 5, 6), separators, IMAGE)


def test_separators_of_another_scope() -> None:
    with pytest.raises(InputError, match="make 3 dimensions, scope 'rows' has 2; give 1"):
        separators_for((4, 5, 6), (1, 2), ROWS)
