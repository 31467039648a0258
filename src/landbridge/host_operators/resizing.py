"""Resize and Upsample whose factors are computed, so that they have no kernel: each axis is resized by a matrix
product.

The definitions: https://onnx.ai/onnx/operators/onnx__Resize.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from landbridge.errors import ShapeError
from landbridge.operators import Array, HostValue, Results, host_operator
from landbridge.records import record
from landbridge.sizes.scaled import meant, scaled


@record(frozen=True)
class _Axis:
    """An axis of ``old`` elements that is resized to ``new``, by ``scale``; its part from ``start`` to ``end`` is
    used.
    """

    number: int
    old: int
    new: int
    scale: float
    start: float = 0.0
    end: float = 1.0


def _results(x: HostValue, *_: HostValue | None, axes: Sequence[int] | None = None, **__: object) -> Results:
    rank = len(x.shape)
    moved = range(rank) if axes is None else [axis % rank for axis in axes]
    return [([None if axis in moved else extent for axis, extent in enumerate(x.shape)], x.dtype)]


@host_operator("", "Upsample", since=9, results=_results)
@host_operator("", "Resize", since=10, results=_results)
def upsample(x: Array, scales: Array, *, mode: str = "nearest") -> Array:
    """Resizes as before opset 10: asymmetric coordinates, rounded down."""
    factors = [float(meant(float(factor))) for factor in scales.reshape(-1)]
    if len(factors) != x.ndim:
        raise ShapeError(f"scales has {len(factors)} elements; {x.ndim} are legal, one for each axis")
    axes = [_Axis(i, e, scaled(e, f), f) for i, (e, f) in enumerate(zip(x.shape, factors, strict=True))]
    return _resized(x, axes, mode, "asymmetric", "floor", None, (False, False, -0.75))


@host_operator("", "Resize", since=11, results=_results)
def resize(  # noqa: PLR0913 - the attributes of the operator
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    *,
    axes: Sequence[int] | None = None,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    keep_aspect_ratio_policy: str = "stretch",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    antialias: int = 0,
) -> Array:
    """Resizes with nearest, linear or cubic interpolation and every coordinate transformation; ``axes`` are resized, by
    default all.

    ``roi``: their starts and then their ends. Either ``scales`` or ``sizes`` has an element for each.
    """
    values = range(x.ndim) if axes is None else [axis % x.ndim for axis in axes]
    old = [x.shape[axis] for axis in values]
    crop = coordinate_transformation_mode == "tf_crop_and_resize"
    given = np.zeros(0) if roi is None or not crop else roi.astype(np.float64).reshape(-1)
    if given.size not in (0, 2 * len(old)):
        raise ShapeError(f"roi has {given.size} elements; {2 * len(old)} are legal, two for each axis that is resized")
    starts, ends = given.reshape(2, -1) if given.size else (np.zeros(len(old)), np.ones(len(old)))
    for name, each in (("scales", scales), ("sizes", sizes)):
        if each is not None and each.size not in (0, len(old)):
            raise ShapeError(
                f"{name} has {each.size} elements; {len(old)} are legal, one for each axis that is resized"
            )
    if scales is not None and scales.size:
        factors = [float(meant(float(factor))) for factor in scales.reshape(-1)]
        new = [scaled(e, f) for e, f in zip(old, factors, strict=True)]
    elif sizes is not None and sizes.size:
        new = [int(size) for size in sizes.reshape(-1)]
        factors = [n / e for n, e in zip(new, old, strict=True)]
        if keep_aspect_ratio_policy != "stretch":
            factor = min(factors) if keep_aspect_ratio_policy == "not_larger" else max(factors)
            factors = [factor] * len(old)
            new = [math.floor(e * factor + 0.5) for e in old]
    else:
        raise ShapeError("it has neither scales nor sizes")
    created = [_Axis(*each) for each in zip(values, old, new, factors, starts.tolist(), ends.tolist(), strict=True)]
    how = (bool(antialias), bool(exclude_outside), cubic_coeff_a)
    fill = extrapolation_value if crop else None
    return _resized(x, created, mode, coordinate_transformation_mode, nearest_mode, fill, how)


def _resized(
    x: Array,
    axes: Sequence[_Axis],
    mode: str,
    transform: str,
    nearest: str,
    fill: float | None,
    how: tuple[bool, bool, float],
) -> Array:
    """Computes ``x`` resized, ``fill`` where that lies outside. ``how``: antialias, exclude_outside, cubic_coeff_a."""
    result = x if mode == "nearest" else x.astype(np.float64)
    for axis in axes:
        if (axis.old, axis.scale) == (axis.new, 1) and fill is None:
            continue
        at = _positions(axis, transform)
        if mode == "nearest":
            result = np.take(result, _nearest(at, nearest).clip(0, axis.old - 1), axis.number)
        elif (axis.old, axis.new) != (1, 1):
            result = np.moveaxis(np.tensordot(_weights(axis, at, mode, *how), result, (1, axis.number)), 0, axis.number)
        if fill is not None:
            outside = (at < 0) | (at > axis.old - 1)
            shape = [-1 if number == axis.number else 1 for number in range(x.ndim)]
            result = np.where(outside.reshape(shape), np.asarray(fill, result.dtype), result)
    return np.ascontiguousarray(result.astype(x.dtype))


def _positions(axis: _Axis, transform: str) -> Array:
    """Returns the source coordinate of each element."""
    i, old, new, scale = np.arange(axis.new, dtype=np.float64), axis.old, axis.new, axis.scale
    match transform:
        case "align_corners":
            return i * (old - 1) / (new - 1) if new > 1 else i * 0
        case "asymmetric":
            return i / scale
        case "tf_crop_and_resize" if new > 1:
            return axis.start * (old - 1) + i * (axis.end - axis.start) * (old - 1) / (new - 1)
        case "tf_crop_and_resize":
            return i * 0 + 0.5 * (axis.start + axis.end) * (old - 1)
        case "pytorch_half_pixel":
            return (i + 0.5) / scale - 0.5 if new > 1 else i * 0
        case "tf_half_pixel_for_nn":
            return (i + 0.5) / scale
        case "half_pixel_symmetric":
            return old / 2 * (1 - new / (scale * old)) + (i + 0.5) / scale - 0.5
        case _:
            return (i + 0.5) / scale - 0.5


def _nearest(at: Array, mode: str) -> Array:
    match mode:
        case "floor":
            places = np.floor(at)
        case "ceil":
            places = np.ceil(at)
        case "round_prefer_ceil":
            places = np.floor(at + 0.5)
        case _:
            places = np.ceil(at - 0.5)
    return places.astype(np.int64)


def _weights(axis: _Axis, at: Array, mode: str, antialias: bool, exclude: bool, a: float) -> Array:
    """Returns the weight of each source element in each element, [new, old]."""
    shrink = min(axis.scale, 1.0) if antialias else 1.0
    reach = math.ceil((1 if mode == "linear" else 2) / shrink)
    if mode == "linear" and not antialias:
        at = at.clip(0, axis.old - 1)
    sources = np.floor(at)[:, None] + np.arange(1 - reach, reach + 1)
    weights = _kernel(np.abs(sources - at[:, None]) * shrink, mode, a)
    if exclude:
        weights = np.where((sources < 0) | (sources >= axis.old), 0, weights)
    weights = weights / weights.sum(1, keepdims=True)
    matrix = np.zeros((axis.new, axis.old))
    rows = np.broadcast_to(np.arange(axis.new)[:, None], sources.shape)
    np.add.at(matrix, (rows, sources.clip(0, axis.old - 1).astype(np.int64)), weights)
    return matrix


def _kernel(distance: Array, mode: str, a: float) -> Array:
    """Returns the interpolation kernel at a distance in source elements."""
    if mode == "linear":
        return (1 - distance).clip(0, 1)
    inner = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    outer = a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
    return np.where(distance <= 1, inner, np.where(distance < 2, outer, 0))
