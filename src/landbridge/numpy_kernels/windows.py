"""Windows of convolutions and pools over padded images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import as_strided

from landbridge.array_type import Array


def padded(x: Array, pads: Sequence[int], value: float = 0.0, *, least: Sequence[int] = ()) -> Array:
    """Returns ``x`` of shape (N, C, ...) with ``pads`` (all before, then all after) of ``value`` around its images.

    Images get at least the extents ``least``, by elements after them. ``x`` itself is returned where nothing is added.
    """
    rank = x.ndim - 2
    extents = [x.shape[2 + i] + pads[i] + pads[rank + i] for i in range(rank)]
    extents = [max(pair) for pair in zip(extents, least or extents, strict=True)]
    if tuple(extents) == x.shape[2:]:
        return x
    created = (
        np.full((*x.shape[:2], *extents), value, x.dtype) if value else np.zeros((*x.shape[:2], *extents), x.dtype)
    )
    inside = [slice(pads[i], pads[i] + x.shape[2 + i]) for i in range(rank)]
    created[(slice(None), slice(None), *inside)] = x
    return created


def taps(
    x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], outputs: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yields each element of a window by its position, and a view of what it reads for all outputs: the shape of ``x``
    with ``outputs`` as its last extents.
    """
    for position in product(*map(range, kernel)):
        begins = [p * d for p, d in zip(position, dilations, strict=True)]
        every = slice(None)
        read = [slice(b, b + (o - 1) * s + 1, s) for b, o, s in zip(begins, outputs, strides, strict=True)]
        yield position, x[(*(every for _ in range(x.ndim - len(read))), *read)]


def windows(
    image: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], outputs: Sequence[int]
) -> Array:
    """Returns a view of ``image`` (C, ...) of shape (C, kernel extents, output extents); do not write it."""
    steps = image.strides[1:]
    inner = [step * d for step, d in zip(steps, dilations, strict=True)]
    outer = [step * s for step, s in zip(steps, strides, strict=True)]
    return as_strided(image, (image.shape[0], *kernel, *outputs), (image.strides[0], *inner, *outer), writeable=False)
