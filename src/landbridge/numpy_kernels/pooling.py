"""Pools of windows and of whole images."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from landbridge.array_type import Array
from landbridge.numpy_kernels.registry import kernel
from landbridge.numpy_kernels.windows import padded, taps


@kernel("MaxPool")
def max_pool(
    x: Array,
    out: Array,
    *,
    extents: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> None:
    """The largest element of each window."""
    outputs = out.shape[2:]
    lowest = float("-inf") if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    source = padded(x, pads, lowest, least=_reached(outputs, extents, strides, dilations))
    for position, read in taps(source, extents, strides, dilations, outputs):
        if any(position):
            np.maximum(out, read, out=out)
        else:
            np.copyto(out, read)


@kernel("AveragePool")
def average_pool(
    x: Array,
    out: Array,
    *,
    extents: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    count_include_pad: int,
) -> None:
    """The mean of each window, without what lies outside of the image, or only without what lies outside its pads."""
    outputs = out.shape[2:]
    source = padded(x, pads, least=_reached(outputs, extents, strides, dilations))
    for position, read in taps(source, extents, strides, dilations, outputs):
        if any(position):
            np.add(out, read, out=out)
        else:
            np.copyto(out, read)
    rank = len(outputs)
    count = np.ones((), x.dtype)
    for axis, (o, k, s, d) in enumerate(zip(outputs, extents, strides, dilations, strict=True)):
        before, after = pads[axis], pads[rank + axis]
        at = np.arange(o)[:, None] * s - before + np.arange(k) * d
        low, high = (-before, x.shape[2 + axis] + after) if count_include_pad else (0, x.shape[2 + axis])
        inside = ((at >= low) & (at < high)).sum(1).astype(x.dtype)
        count = count * inside.reshape((-1,) + (1,) * (rank - 1 - axis))
    np.divide(out, prod(extents) if (count == prod(extents)).all() else count, out=out)


@kernel("GlobalAveragePool")
def global_average_pool(x: Array, out: Array) -> None:
    """The mean of each channel of each image."""
    np.mean(x, tuple(range(2, x.ndim)), keepdims=True, out=out)


@kernel("GlobalMaxPool")
def global_max_pool(x: Array, out: Array) -> None:
    """The largest element of each channel of each image."""
    np.max(x, tuple(range(2, x.ndim)), keepdims=True, out=out)


def _reached(
    outputs: Sequence[int], extents: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[int]:
    """Returns the extents that all windows together take."""
    every = zip(outputs, extents, strides, dilations, strict=True)
    return [(o - 1) * s + (k - 1) * d + 1 for o, k, s, d in every]
