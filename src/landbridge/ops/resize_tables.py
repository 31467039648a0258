"""Where the elements of a resized axis read, as tables computed at import."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from landbridge.ir.types import LARGEST_CONSTANT, check_size
from landbridge.ops.context import Array, OpContext


@dataclass(frozen=True)
class ResizedAxis:
    """One axis to resize: extents before and after, the scale, and the region of interest."""

    axis: int
    old: int
    new: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)


def nearest(axis: ResizedAxis, transform: str, rounding: str, crop: bool) -> Array:
    """The source index of every output element; with ``crop``, -1 where it lies outside."""
    at = _positions(axis, transform)
    index = np.clip(_rounded(at, rounding), 0, axis.old - 1).astype(np.int64)
    return np.where((at < 0) | (at > axis.old - 1), -1, index) if crop else index


def taps(c: OpContext, axis: ResizedAxis, mode: str, transform: str, crop: bool) -> tuple[Array, Array, Array | None]:
    """(source index, weight) of every tap of every output element, and with ``crop`` which elements lie outside."""
    if mode not in ("linear", "cubic"):
        raise c.unsupported(f"mode {mode!r}; nearest, linear and cubic are known")
    at = _positions(axis, transform)
    outside = (at < 0) | (at > axis.old - 1) if crop else None
    if mode == "linear" and not c.attribute("antialias", 0):
        at = np.clip(at, 0, axis.old - 1)
    shrink = min(axis.scale, 1.0) if c.attribute("antialias", 0) else 1.0
    reach = int(np.ceil((1 if mode == "linear" else 2) / shrink))
    source = np.floor(at)[:, None].astype(np.int64) + np.arange(1 - reach, reach + 1)
    weights = _kernel(c, mode, (source - at[:, None]) * shrink)
    if c.attribute("exclude_outside", 0):
        weights = np.where((source < 0) | (source >= axis.old), 0, weights)
    weights = weights / weights.sum(1, keepdims=True)
    return np.clip(source, 0, axis.old - 1), weights, outside


def repeated_taps(c: OpContext, axis: ResizedAxis, mode: str, transform: str) -> tuple[Array, Array]:
    """``taps`` where the extent is a multiple of the old one: of the elements that each of the source becomes.

    Sources count from that element; they may lie outside, where the nearest inside is meant.
    """
    factor, middle = int(axis.scale), 8  # of enough elements that no tap of the middle one is outside
    source, weights, _ = taps(
        c, ResizedAxis(axis.axis, 2 * middle, 2 * middle * factor, factor), mode, transform, False
    )
    row = slice(middle * factor, (middle + 1) * factor)
    return source[row] - middle, weights[row]


def _kernel(c: OpContext, mode: str, distance: Array) -> Array:
    """The interpolation kernel at a distance in source elements."""
    d = np.abs(distance)
    a: float = c.attribute("cubic_coeff_a", -0.75)
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    cubic = np.where(d <= 1, near, np.where(d < 2, far, 0))
    weights: Array = np.maximum(1 - d, 0) if mode == "linear" else cubic
    return weights


def _positions(axis: ResizedAxis, transform: str) -> Array:
    """The source coordinate of every output element."""
    check_size((axis.new,), "float64", LARGEST_CONSTANT)
    i = np.arange(axis.new, dtype=np.float64)
    match transform:
        case "align_corners":
            length = axis.scale * axis.old  # not rounded, as the definition has it
            return i * (axis.old - 1) / (length - 1) if axis.new > 1 else i * 0
        case "asymmetric":
            return i / axis.scale
        case "tf_crop_and_resize":
            start, end = axis.roi
            if axis.new > 1:
                return start * (axis.old - 1) + i * (end - start) * (axis.old - 1) / (axis.new - 1)
            return i * 0 + 0.5 * (start + end) * (axis.old - 1)
        case "pytorch_half_pixel":
            return (i + 0.5) / axis.scale - 0.5 if axis.new > 1 else i * 0
        case "tf_half_pixel_for_nn":
            return (i + 0.5) / axis.scale
        case "half_pixel_symmetric":
            adjust = axis.new / (axis.scale * axis.old)
            return axis.old / 2 * (1 - adjust) + (i + 0.5) / axis.scale - 0.5
        case _:
            return (i + 0.5) / axis.scale - 0.5


def _rounded(x: Array, mode: str) -> Array:
    match mode:
        case "floor":
            return np.floor(x)
        case "ceil":
            return np.ceil(x)
        case "round_prefer_ceil":
            return np.floor(x + 0.5)
        case _:
            return np.ceil(x - 0.5)
