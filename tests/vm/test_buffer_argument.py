"""Objects with Python's buffer protocol as arrays: their elements, their dtype, and that they stay exported."""

from __future__ import annotations

import array
import ctypes
import mmap
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.errors import InputError
from landbridge.sizes.size import dimension
from landbridge.vm.buffer_argument import array_of_buffer

F4 = np.dtype(np.float32)
N, M = dimension("N"), dimension("M")


def filled_map(content: bytes) -> mmap.mmap:
    mapping = mmap.mmap(-1, len(content))
    mapping[:] = content
    return mapping


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, filled_map, lambda b: array.array("f", b)])
@pytest.mark.parametrize("shape", [(2, 3, 4), (24,), (4, 6, 1)])
def test_a_buffer_of_one_axis_is_the_elements_in_c_order(make: Any, shape: tuple[int, ...]) -> None:
    numbers = np.arange(24, dtype=np.float32)
    found = array_of_buffer("x", make(numbers.tobytes()), shape, F4)
    assert found is not None and found.dtype == F4
    np.testing.assert_array_equal(found, numbers.reshape(shape))


@given(
    st.sampled_from(["f2", "f4", "f8", "i1", "u1", "i4", "i8", "?", "bf16"]), st.lists(st.integers(0, 5), max_size=4)
)
def test_bytes_are_elements_of_any_dtype_and_shape(name: str, extents: list[int]) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16) if name == "bf16" else np.dtype(name)
    want = (np.arange(int(np.prod(extents))) % 2).astype(dtype).reshape(extents)
    found = array_of_buffer("x", bytearray(want.tobytes()), extents, dtype)
    assert found is not None and found.dtype == dtype and found.shape == tuple(extents)
    np.testing.assert_array_equal(found, want)


def test_a_buffer_of_several_axes_has_its_own_shape_and_strides() -> None:
    grid = (ctypes.c_float * 4 * 2)((1, 2, 3, 4), (5, 6, 7, 8))
    found = array_of_buffer("x", grid, (8,), F4)
    assert found is not None and found.shape == (2, 4) and found[1, 0] == 5
    view = memoryview(np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2])
    strided = array_of_buffer("x", view, (3, 2), F4)
    assert strided is not None and strided.strides == (16, 8)


def test_a_typed_buffer_keeps_its_dtype() -> None:
    found = array_of_buffer("x", array.array("d", [1, 2]), (2, 1), F4)
    assert found is not None and found.dtype == np.float64 and found.shape == (2, 1)
    other = array_of_buffer("x", array.array("d", [1, 2, 3]), (2, 1), F4)
    assert other is not None and other.shape == (3,)  # its dtype is the first thing to say


def test_the_owner_cannot_resize_or_close_it_as_long_as_the_array_lives() -> None:
    memory, mapping = bytearray(8), mmap.mmap(-1, 4096)
    found = [array_of_buffer("x", memory, (2,), F4), array_of_buffer("x", memoryview(mapping)[:8], (2, 1), F4)]
    with pytest.raises(BufferError):
        memory.append(1)
    with pytest.raises(BufferError):
        mapping.close()
    memory[:4] = np.float32(7).tobytes()
    assert found[0] is not None and found[0][0] == 7
    found.clear()
    memory.append(1)
    mapping.close()


def test_it_is_read_only_where_the_buffer_is() -> None:
    for buffer, writeable in ((bytes(8), False), (bytearray(8), True), (memoryview(bytearray(8)).toreadonly(), False)):
        found = array_of_buffer("x", buffer, (2,), F4)
        assert found is not None and found.flags.writeable is writeable


@pytest.mark.parametrize("value", [1.5, np.float32(1), [1.0], None, "text", object()])
def test_others_have_no_buffer(value: object) -> None:
    assert array_of_buffer("x", value, (1,), F4) is None


def released() -> memoryview:
    view = memoryview(bytes(8))
    view.release()
    return view


@pytest.mark.parametrize(
    ("buffer", "match"),
    [
        (bytearray(12), r"the bytearray has 12 bytes, it takes 8 bytes, float32 of shape \(2, 1\)"),
        (bytes(9), "the bytes has 9 bytes, it takes 8 bytes"),
        (array.array("f", [1, 2, 3]), "the array has 12 bytes, it takes 8 bytes"),
        (released(), "gives no memory"),
    ],
)
def test_what_does_not_fit_is_an_error_that_says_both_sizes(buffer: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        array_of_buffer("input 'x'", buffer, (2, 1), F4)


def test_one_open_extent_follows_from_the_number_of_elements() -> None:
    for count in (0, 1, 5):
        found = array_of_buffer("x", bytearray(count * 24), (2, N, 3), F4)
        assert found is not None and found.shape == (2, count, 3)
    with pytest.raises(InputError, match=r"28 bytes, it takes a multiple of 24 bytes, float32 of shape \(2, N, 3\)"):
        array_of_buffer("x", bytearray(28), (2, N, 3), F4)
    with pytest.raises(InputError, match=r"several extents of shape \(N, M\) are open"):
        array_of_buffer("x", bytearray(24), (N, M), F4)
