"""Operators that sample or scatter pixels: Col2Im, DeformConv, RoiAlign, MaxUnpool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from landbridge.host_operators.registry import Array, HostValue, Results, host_operator


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
    """The sum of blocks, a column each, where they lie in the image."""
    axes, spatial, extents = len(image), image.tolist(), block.tolist()
    dilation, step = dilations or [1] * axes, strides or [1] * axes
    around = pads or [0] * (2 * axes)
    padded = [e + around[i] + around[axes + i] for i, e in enumerate(spatial)]
    counts = [(p - d * (b - 1) - 1) // s + 1 for p, d, b, s in zip(padded, dilation, extents, step, strict=True)]
    batch, channels = x.shape[0], x.shape[1] // int(np.prod(extents))
    columns = x.reshape(batch, channels, *extents, *counts)
    made = np.zeros((batch, channels, *padded), x.dtype)
    for at in np.ndindex(*extents):
        where: tuple[Any, ...] = (
            ...,
            *(slice(a * d, a * d + s * n, s) for a, d, s, n in zip(at, dilation, step, counts, strict=True)),
        )
        made[where] += columns[(slice(None), slice(None), *at)]
    inner: tuple[Any, ...] = (..., *(slice(around[i], around[i] + e) for i, e in enumerate(spatial)))
    return np.asarray(made[inner])


def _sampled(image: Array, y: Array, x: Array) -> Array:
    """``image``, the last two axes of which are rows and columns, at fractions of them; 0 outside of it."""
    height, width = image.shape[-2:]
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    made = np.zeros((*image.shape[:-2], *y.shape), image.dtype)
    for row, column in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
        weight = (1 - np.abs(y - row)) * (1 - np.abs(x - column))
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        pixels = image[..., np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)]
        made += pixels * np.where(inside, weight, 0).astype(image.dtype)
    return made


def _deform_results(x: HostValue, weight: HostValue, offset: HostValue, *_: Any, **__: Any) -> Results:
    return [((x.shape[0], weight.shape[0], *offset.shape[2:]), x.dtype)]


@host_operator("", "DeformConv", results=_deform_results)
def deform_conv(
    x: Array,
    weight: Array,
    offset: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """A convolution of images whose taps are moved by ``offset`` and weighted by ``mask``."""
    height, width = weight.shape[2:]
    (down, right), (step_y, step_x) = dilations or (1, 1), strides or (1, 1)
    top, left = (pads or (0, 0))[:2]
    batch, channels = x.shape[:2]
    rows, columns = offset.shape[2:]
    moved = offset.reshape(batch, offset_group, height, width, 2, rows, columns)
    factors = None if mask is None else mask.reshape(batch, offset_group, 1, height, width, rows, columns)
    y = np.arange(height)[:, None, None, None] * down + np.arange(rows)[:, None] * step_y - top
    at_x = np.arange(width)[:, None, None] * right + np.arange(columns) * step_x - left
    parts = x.reshape(batch, offset_group, channels // offset_group, *x.shape[2:])
    taps = np.zeros((batch, offset_group, channels // offset_group, height, width, rows, columns), x.dtype)
    for b in range(batch):
        for g in range(offset_group):
            taps[b, g] = _sampled(parts[b, g], y + moved[b, g, :, :, 0], at_x + moved[b, g, :, :, 1])
    if factors is not None:
        taps *= factors
    taps = taps.reshape(batch, group, channels // group, height, width, rows, columns)
    weights = weight.reshape(group, weight.shape[0] // group, *weight.shape[1:])
    made = np.einsum("bgchwyx,gochw->bgoyx", taps, weights).reshape(batch, weight.shape[0], rows, columns)
    return np.asarray(made if bias is None else made + bias[:, None, None], x.dtype)


def _roi_results(
    x: HostValue, rois: HostValue, _: HostValue, *, output_height: int = 1, output_width: int = 1, **__: Any
) -> Results:
    return [((rois.shape[0], x.shape[1], output_height, output_width), x.dtype)]


def _edges(at: Array, extent: int) -> tuple[Array, Array, Array, Array]:
    """The pixels before and behind each place, and the weight of the second; whether it is near the image."""
    near = (at >= -1) & (at <= extent)
    at = np.maximum(at, 0)
    low = np.minimum(at.astype(int), extent - 1)
    return low, np.minimum(low + 1, extent - 1), np.where(low >= extent - 1, 0, at - low), near


def _aligned(
    x: Array,
    rois: Array,
    batches: Array,
    *,
    aligned: bool,
    mode: str,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
) -> Array:
    made = np.zeros((rois.shape[0], x.shape[1], output_height, output_width), x.dtype)
    for number, (roi, batch) in enumerate(zip(rois, batches, strict=True)):
        corners = roi.astype(np.float64) * spatial_scale - (0.5 if aligned else 0)
        extent = corners[2:] - corners[:2]
        if not aligned:
            extent = np.maximum(extent, 1)
        grid = []
        for start, size, bins in ((corners[1], extent[1], output_height), (corners[0], extent[0], output_width)):
            samples = sampling_ratio if sampling_ratio > 0 else max(int(np.ceil(size / bins)), 1)
            grid.append(start + (np.arange(bins * samples) + 0.5) * (size / bins / samples))
        y, x_at = _edges(grid[0], x.shape[2]), _edges(grid[1], x.shape[3])
        inside = (y[3][:, None] & x_at[3]).astype(x.dtype)
        pixels = [
            x[batch][:, row[:, None], column] * (of_row[:, None] * of_column * inside).astype(x.dtype)
            for row, of_row in ((y[0], 1 - y[2]), (y[1], y[2]))
            for column, of_column in ((x_at[0], 1 - x_at[2]), (x_at[1], x_at[2]))
        ]
        values = np.maximum.reduce(pixels) if mode == "max" else sum(pixels)
        cells = np.asarray(values).reshape(x.shape[1], output_height, -1, output_width, len(grid[1]) // output_width)
        made[number] = cells.max((2, 4)) if mode == "max" else cells.mean((2, 4))
    return made


@host_operator("", "RoiAlign", since=16, results=_roi_results)
def roi_align(
    x: Array,
    rois: Array,
    batches: Array,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Array:
    """Regions of images, each as many cells: the mean, or the largest, of samples between pixels."""
    return _aligned(
        x, rois, batches, aligned=coordinate_transformation_mode == "half_pixel", mode=mode,
        output_height=output_height, output_width=output_width, sampling_ratio=sampling_ratio,
        spatial_scale=spatial_scale,
    )  # fmt: skip


@host_operator("", "RoiAlign", since=10, results=_roi_results)
def roi_align_10(x: Array, rois: Array, batches: Array, **attributes: Any) -> Array:
    """As it was before it said what coordinates are: of pixels' corners."""
    return roi_align(x, rois, batches, coordinate_transformation_mode="output_half_pixel", **attributes)


def _unpooled(
    shape: Sequence[Any], kernel: Sequence[int], pads: Sequence[int] | None, strides: Sequence[int] | None
) -> list[Any]:
    axes = len(kernel)
    step, around = strides or [1] * axes, pads or [0] * (2 * axes)
    return [(e - 1) * step[i] + kernel[i] - around[i] - around[axes + i] for i, e in enumerate(shape[2:])]


def _unpool_results(
    x: HostValue,
    _: HostValue,
    shape: HostValue | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Results:
    if shape is None:
        return [((*x.shape[:2], *_unpooled(x.shape, kernel_shape, pads, strides)), x.dtype)]
    return [([None] * len(x.shape) if shape.value is None else shape.value.tolist(), x.dtype)]


@host_operator("", "MaxUnpool", results=_unpool_results)
def max_unpool(
    x: Array,
    indices: Array,
    shape: Array | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """What MaxPool took, where it took it from; 0 elsewhere."""
    own = (*x.shape[:2], *_unpooled(x.shape, kernel_shape, pads, strides))
    made = np.zeros(int(np.prod(own)), x.dtype)
    made[indices.reshape(-1)] = x.reshape(-1)
    made = made.reshape(own)
    if shape is None:
        return made
    larger = np.zeros(shape.tolist(), x.dtype)
    larger[tuple(slice(0, e) for e in own)] = made
    return larger
