"""Packed arrays begin where a cache line does, wherever what they are made of is."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.ir.packing import pack_array
from landbridge.process import background_threads
from tests.ops.one_node import one_node


@pytest.mark.parametrize("offset", range(0, 128, 16))
@pytest.mark.parametrize(("axes", "tiles"), [([1], [16]), ([0], [16]), ([0, 1], [8, 16])])
def test_packed_arrays_begin_where_a_line_does(offset: int, axes: list[int], tiles: list[int]) -> None:
    buffer = np.zeros(64 * 16 * 4 + 256, np.uint8)
    start = -buffer.ctypes.data % STORAGE_ALIGNMENT + offset
    array = buffer[start : start + 64 * 16 * 4].view(np.float32).reshape(64, 16)
    array[...] = np.arange(array.size).reshape(array.shape)
    packed = pack_array(array, axes, tiles)
    assert packed.flags.c_contiguous
    assert packed.ctypes.data % STORAGE_ALIGNMENT == 0
    assert sorted(packed.flat) == list(range(array.size))


@pytest.mark.parametrize(
    ("shape", "axes", "tiles"),
    [((64, 32, 3, 3), [0], [16]), ((7, 40), [0, 1], [4, 16]), ((1, 8, 64), [2], [16]), ((5,), [0], [5]), ((), [], [])],
)
def test_parts_of_arrays_are_packed_beside_each_other(
    shape: tuple[int, ...], axes: list[int], tiles: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    monkeypatch.setattr(background_threads, "_cores", lambda: 1)
    expected = pack_array(array, axes, tiles)
    monkeypatch.setattr(background_threads, "_cores", lambda: 3)
    monkeypatch.setattr(background_threads, "_PART", 1)
    assert np.array_equal(pack_array(array, axes, tiles), expected)


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3", "c"])
def test_kernels_are_given_weights_from_a_line_on(target: str) -> None:
    for depth in (64, 320, 1024):
        model = one_node("MatMul", [np.ones((8, depth), np.float32), np.ones((depth, 80), np.float32)], {1})
        weights = [a for a in lb.compile(model, target).constants.values() if a.size >= depth * 80]
        assert weights and all(a.ctypes.data % STORAGE_ALIGNMENT == 0 for a in weights)
