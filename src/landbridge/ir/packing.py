"""Packed layouts: axes cut into tiles, the tiles innermost; of shapes and of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]


def packed_shape(shape: Sequence[int], axes: Sequence[int], tiles: Sequence[int]) -> tuple[int, ...]:
    """The physical shape of ``shape`` with each ``axes[i]`` cut into tiles of ``tiles[i]``, tiles innermost."""
    outer = list(shape)
    for axis, tile in zip(axes, tiles, strict=True):
        outer[axis] = -(-outer[axis] // tile)
    return (*outer, *tiles)


def pack_array(array: Array, axes: Sequence[int], tiles: Sequence[int]) -> Array:
    """``array`` with ``axes[i]`` cut into ``tiles[i]``, tiles innermost; what a tile lacks is zero."""
    padding = [(0, 0)] * array.ndim
    for axis, tile in zip(axes, tiles, strict=True):
        padding[axis] = (0, -array.shape[axis] % tile)
    padded = np.pad(array, padding) if any(high for _, high in padding) else array
    for axis, tile in zip(axes, tiles, strict=True):
        # Cutting an axis puts the tile behind it; moving it last keeps the numbers of the outer axes.
        cut = (*padded.shape[:axis], padded.shape[axis] // tile, tile, *padded.shape[axis + 1 :])
        padded = np.moveaxis(padded.reshape(cut), axis + 1, -1)
    return np.ascontiguousarray(padded)


def unpack_array(array: Array, axes: Sequence[int], tiles: Sequence[int], shape: Sequence[int]) -> Array:
    """The inverse of ``pack_array``: the logical ``shape``, padding dropped."""
    for axis, tile in zip(reversed(axes), reversed(tiles), strict=True):
        moved = np.moveaxis(array, -1, axis + 1)
        array = moved.reshape(*moved.shape[:axis], moved.shape[axis] * tile, *moved.shape[axis + 2 :])
    return np.ascontiguousarray(array[tuple(slice(extent) for extent in shape)])
