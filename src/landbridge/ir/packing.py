"""Packed (blocked) layouts of shapes and arrays: axes are cut into tiles, and the tiles are innermost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.process.background_threads import in_parts

Array: TypeAlias = np.ndarray[Any, Any]


def packed_shape(shape: Sequence[int], axes: Sequence[int], tiles: Sequence[int]) -> tuple[int, ...]:
    """Returns the physical shape of ``shape`` with each ``axes[i]`` cut into tiles of ``tiles[i]``, tiles innermost."""
    outer = list(shape)
    for axis, tile in zip(axes, tiles, strict=True):
        outer[axis] = -(-outer[axis] // tile)
    return (*outer, *tiles)


def pack_array(array: Array, axes: Sequence[int], tiles: Sequence[int]) -> Array:
    """Returns ``array`` with ``axes[i]`` cut into ``tiles[i]``, tiles innermost; partial tiles are padded with zeros.

    The result is aligned to a cache line, so that a vector of a line's size is read from one line. NumPy's own memory
    begins 16 bytes behind; with vectors that cross lines products take up to half as long again.
    """
    padding = [(0, 0)] * array.ndim
    for axis, tile in zip(axes, tiles, strict=True):
        padding[axis] = (0, -array.shape[axis] % tile)
    padded = np.pad(array, padding) if any(high for _, high in padding) else array
    for axis, tile in zip(axes, tiles, strict=True):
        # Cutting an axis puts the tile behind it; moving the tile last retains the numbering of the outer axes.
        cut = (*padded.shape[:axis], padded.shape[axis] // tile, tile, *padded.shape[axis + 1 :])
        padded = np.moveaxis(padded.reshape(cut), axis + 1, -1)
    return _from_a_line(padded)


def _from_a_line(array: Array) -> Array:
    """Returns ``array`` if it is C-contiguous and starts at a cache line, else such a copy."""
    if array.flags.c_contiguous and array.ctypes.data % STORAGE_ALIGNMENT == 0:
        return array
    buffer = np.empty(array.nbytes + STORAGE_ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % STORAGE_ALIGNMENT
    aligned = buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    source, target = np.atleast_1d(array, aligned)
    axis = next((a for a, extent in enumerate(source.shape) if extent > 1), 0)  # no other can be cut

    def copy(begin: int, end: int) -> None:
        part = (*[slice(None)] * axis, slice(begin, end))
        target[part] = source[part]

    in_parts(copy, source.shape[axis], array.nbytes)
    return aligned


def unpack_array(array: Array, axes: Sequence[int], tiles: Sequence[int], shape: Sequence[int]) -> Array:
    """Returns the logical ``shape`` without padding: the inverse of ``pack_array``."""
    for axis, tile in zip(reversed(axes), reversed(tiles), strict=True):
        moved = np.moveaxis(array, -1, axis + 1)
        array = moved.reshape(*moved.shape[:axis], moved.shape[axis] * tile, *moved.shape[axis + 2 :])
    return np.ascontiguousarray(array[tuple(slice(extent) for extent in shape)])
