"""The guard pages themselves: they fault where they say, and a fault is a failure with a name."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.witnesses.guard_pages import SIDES, ProcessEnded, Side, guarded, in_child


def touch(array: np.ndarray, offset: int) -> int:
    """The byte at ``offset`` of a guarded copy of ``array``, past its ends as well."""
    side: Side = "before" if offset < 0 else "after"
    copy = guarded(array, side)
    return ctypes.c_uint8.from_address(copy.ctypes.data + offset).value


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("shape", [(), (0, 3), (3, 5), (1024,), (1025, 3)])
def test_a_copy_is_equal_contiguous_and_writable(shape: tuple[int, ...], side: Side) -> None:
    array = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    copy = guarded(array, side)
    np.testing.assert_array_equal(copy, array)
    assert copy.flags.carray and copy.dtype == array.dtype
    edge = copy.ctypes.data + (copy.nbytes if side == "after" else 0)
    assert edge % 4096 == 0


@pytest.mark.full
def test_the_last_byte_is_inside_and_the_next_ends_the_process() -> None:
    array = np.arange(5, dtype=np.int8)
    assert in_child(touch, array, 4) == 4
    assert in_child(touch, array, 0) == 0
    for outside in (5, -1):
        with pytest.raises(ProcessEnded, match=rf"touch.*{outside}\) ended its process: SIGSEGV"):
            in_child(touch, array, outside)
    assert in_child(touch, array, 1) == 1, "the worker comes back"


def test_what_a_check_raises_has_its_traceback() -> None:
    with pytest.raises(AssertionError, match=r"in the worker(.|\n)*ValueError"):
        in_child(int, "x")
