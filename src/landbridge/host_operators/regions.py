"""RoiAlign: samples of regions of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from landbridge.host_operators.registry import Array, HostValue, Results, host_operator


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
        counts = np.ceil(extent[::-1] / (output_height, output_width))
        if sampling_ratio <= 0 and not all(np.isfinite(counts) & (counts > 0)):
            continue  # No sample is in a region of no extent, or one that ends before it begins: its cells are 0.
        for start, size, bins, count in zip(
            corners[1::-1], extent[::-1], (output_height, output_width), counts, strict=True
        ):
            samples = sampling_ratio if sampling_ratio > 0 else int(count)
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
