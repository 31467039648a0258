"""AffineGrid of a size that is computed: the sampling position of each pixel of a result, for GridSample.

The definition: https://onnx.ai/onnx/operators/onnx__AffineGrid.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from landbridge.errors import ShapeError
from landbridge.operators import Array, HostValue, Results, host_operator


def _results(theta: HostValue, size: HostValue, **_: int) -> Results:
    (length,) = size.shape
    if length not in (4, 5):
        raise ShapeError(f"size has {length} elements; legal: 4 of N, C, H, W or 5 of N, C, D, H, W")
    spatial: Sequence[Any] = [None] * (int(length) - 2) if size.value is None else size.value.tolist()[2:]
    return [((theta.shape[0], *spatial, len(spatial)), theta.dtype)]


@host_operator("", "AffineGrid", since=20, results=_results)
def affine_grid(theta: Array, size: Array, *, align_corners: int = 0) -> Array:
    """Computes the products of ``theta``, (N, 2, 3) or (N, 3, 4), with the coordinates of pixels, x first, from -1 to
    1.
    """
    extents = size.tolist()[2:]
    axes = [_coordinates(extent, bool(align_corners)) for extent in extents]
    places = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(extents)], -1)
    found = places.reshape(-1, len(extents) + 1) @ theta.astype(np.float64).swapaxes(1, 2)
    return found.reshape(len(theta), *extents, len(extents)).astype(theta.dtype)


def _coordinates(extent: int, corners: bool) -> Array:
    """Returns coordinates of ``extent`` pixels from -1 to 1: of their centres, or of their outer ends with ``corners``.

    A lone pixel lies in the middle.
    """
    if corners and extent > 1:
        return np.linspace(-1.0, 1.0, extent)
    return (2 * np.arange(extent) + 1) / extent - 1
