"""Pieces of blocked layouts: every element of either form once, and each where the layout has it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from landbridge.ir.packed_pieces import pieces
from landbridge.ir.packing import packed_shape

CASES = [((1, 60, 5, 7), (1,), (16,)), ((2, 16, 3), (1,), (8,)), ((13, 9, 2), (0, 1), (4, 8)), ((3,), (0,), (8,))]


@pytest.mark.parametrize(("shape", "axes", "tiles"), CASES)
def test_pieces_make_the_packed_form(shape: tuple[int, ...], axes: tuple[int, ...], tiles: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape)).reshape(shape)
    packed = np.full(packed_shape(shape, axes, tiles), -1)
    for piece in pieces(shape, axes, tiles, padding=True):
        for at in product(*map(range, piece.extents)):
            place = tuple(piece.packed.eval(list(at), []))
            assert packed[place] == -1, "an element that two pieces write"
            packed[place] = x[tuple(piece.plain.eval(list(at), []))]
    want = x
    for n, (axis, tile) in enumerate(zip(axes, tiles, strict=True)):
        want = np.pad(want, [(0, -e % tile if a == axis else 0) for a, e in enumerate(want.shape)], "edge")
        cut = want.reshape(*want.shape[:axis], -1, tile, *want.shape[axis + 1 :])
        want = np.moveaxis(cut, axis + 1, len(shape) + n)
    np.testing.assert_array_equal(packed, want)


@pytest.mark.parametrize(("shape", "axes", "tiles"), CASES)
def test_without_padding_they_make_the_plain_form(
    shape: tuple[int, ...], axes: tuple[int, ...], tiles: tuple[int, ...]
) -> None:
    seen = np.zeros(shape, int)
    for piece in pieces(shape, axes, tiles, padding=False):
        for at in product(*map(range, piece.extents)):
            seen[tuple(piece.plain.eval(list(at), []))] += 1
    assert (seen == 1).all()
