"""Col2Im of an image whose shape is computed, which has no kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from landbridge.operators import Array, HostValue, Results, host_operator


def _col2im_results(x: HostValue, image: HostValue, block: HostValue, **_: Any) -> Results:
    (axes,) = image.shape
    channels: Any = None
    if block.value is not None:
        channels = x.shape[1] // int(np.prod(block.value))
    spatial: Sequence[Any] = [None] * axes if image.value is None else image.value.tolist()
    return [((x.shape[0], channels, *spatial), x.dtype)]


@host_operator("", "Col2Im", results=_col2im_results)
def col2im(
    x: Array,
    image: Array,
    block: Array,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """Computes the sum of blocks, a column each, where they lie in the image."""
    axes, spatial, extents = len(image), image.tolist(), block.tolist()
    dilation, step = dilations or [1] * axes, strides or [1] * axes
    around = pads or [0] * (2 * axes)
    padded = [e + around[i] + around[axes + i] for i, e in enumerate(spatial)]
    counts = [(p - d * (b - 1) - 1) // s + 1 for p, d, b, s in zip(padded, dilation, extents, step, strict=True)]
    batch, channels = x.shape[0], x.shape[1] // int(np.prod(extents))
    columns = x.reshape(batch, channels, *extents, *counts)
    created = np.zeros((batch, channels, *padded), x.dtype)
    for at in np.ndindex(*extents):
        where: tuple[Any, ...] = (
            ...,
            *(slice(a * d, a * d + s * n, s) for a, d, s, n in zip(at, dilation, step, counts, strict=True)),
        )
        created[where] += columns[(slice(None), slice(None), *at)]
    inner: tuple[Any, ...] = (..., *(slice(around[i], around[i] + e) for i, e in enumerate(spatial)))
    return np.asarray(created[inner])
