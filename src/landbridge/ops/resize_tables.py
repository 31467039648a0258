"""Tables of the source elements and weights of a resized axis (https://onnx.ai/onnx/operators/onnx__Resize.html)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from landbridge.ops.context import Array, OpContext, Operand
from landbridge.ops.formulas import Formulas, table
from landbridge.records import record
from landbridge.sizes.size import Extent, Size


@record(frozen=True)
class ResizedAxis:
    """One axis to resize: extents before and after, the scale, and the region of interest.

    ``scale`` is None where it is ``new / old`` of open extents.
    """

    axis: int
    old: Extent
    new: Extent
    scale: float | None
    roi: tuple[float, float] = (0.0, 1.0)

    @property
    def is_open(self) -> bool:
        """Returns whether its tables are known only at run time."""
        return isinstance(self.old, Size) or isinstance(self.new, Size)


@record(frozen=True, eq=False)
class Taps:
    """``source`` and ``weight`` of each tap, for each element of the axis.

    If ``factor`` is not None, they are for each of the ``factor`` elements that one source element becomes. Sources are
    then relative to that element and may be out of range, which stands for the nearest element in range.
    """

    source: Operand
    weight: Operand
    factor: int | None = None


@record(frozen=True)
class RegularTap:
    """Element i reads ``first + i * step`` of the source, ``weight`` times."""

    first: int
    step: int
    weight: float = 1.0


def regular(source: Operand) -> RegularTap | None:
    """Returns the steps of a table of sources that are evenly spaced by a whole number and in range; None for any other
    table.
    """
    if not isinstance(source, np.ndarray) or not source.size:
        return None
    gaps = np.diff(source)
    step = int(gaps[0]) if gaps.size else 1
    return RegularTap(int(source[0]), step) if step > 0 and source[0] >= 0 and (gaps == step).all() else None


def steady(taps: Taps) -> list[RegularTap] | None:
    """Returns the taps of an axis if every element has the same taps relative to its own position, with the same
    weights.
    """
    if not isinstance(taps.weight, np.ndarray) or not isinstance(taps.source, np.ndarray) or taps.factor is not None:
        return None
    columns = [regular(column) for column in taps.source.T]
    found = [replace(c, weight=float(w)) for c, w in zip(columns, taps.weight[:1].flat, strict=False) if c is not None]
    same = bool((taps.weight == taps.weight[:1]).all())
    return found if same and len(found) == len(columns) > 0 else None


def nearest(c: OpContext, axis: ResizedAxis, transform: str, rounding: str, crop: bool) -> Operand:
    """Returns the source index of every output element; with ``crop``, -1 where it lies outside."""

    def index(f: Formulas, i: Any) -> Any:
        last, at = f.number(axis.old) - 1.0, _position(f, i, axis, transform)
        inside = f.within(_rounded(f, at, rounding), 0.0, last)
        return f.chosen((at < 0.0) | (at > last), -1.0, inside) if crop else inside

    return table(c, "resize_places", [axis.new], index, "int64", axis.old)


def taps(c: OpContext, axis: ResizedAxis, mode: str, transform: str, dtype: str) -> Taps:
    """Returns those of every output element, inside the source; weights of ``dtype``."""
    if mode not in ("linear", "cubic"):
        raise c.unsupported(f"mode {mode!r}; nearest, linear and cubic are known")
    antialias, exclude = bool(c.attribute("antialias", 0)), bool(c.attribute("exclude_outside", 0))
    if antialias and axis.scale is None:
        raise c.unsupported(f"antialias from {axis.old} to {axis.new}: the number of taps is open; fix these extents")
    shrink = min(axis.scale, 1.0) if antialias and axis.scale is not None else 1.0
    reach = math.ceil((1 if mode == "linear" else 2) / shrink)
    a: float = c.attribute("cubic_coeff_a", -0.75)

    def position(f: Formulas, i: Any) -> Any:
        at = _position(f, i, axis, transform)
        return f.within(at, 0.0, f.number(axis.old) - 1.0) if mode == "linear" and not antialias else at

    def weight(f: Formulas, at: Any, source: Any) -> Any:
        known = _kernel(f, mode, a, (source - at) * shrink)
        outside = (source < 0.0) | (source >= f.number(axis.old))
        return f.chosen(outside, 0.0, known) if exclude else known

    def sources(f: Formulas, i: Any, tap: Any) -> Any:
        source = f.floor(position(f, i)) + (tap + (1.0 - reach))
        return f.within(source, 0.0, f.number(axis.old) - 1.0)

    def weights(f: Formulas, i: Any, tap: Any) -> Any:
        at = position(f, i)
        first = f.floor(at) + (1.0 - reach)
        total = sum((weight(f, at, first + float(k)) for k in range(1, 2 * reach)), weight(f, at, first))
        return weight(f, at, first + tap) / total

    shape = (axis.new, 2 * reach)
    return Taps(
        table(c, "resize_places", shape, sources, "int64", axis.old),
        table(c, "resize_weights", shape, weights, dtype, axis.old),
    )


def outside(c: OpContext, axis: ResizedAxis, transform: str) -> Operand:
    """Returns which elements lie outside the source."""

    def is_outside(f: Formulas, i: Any) -> Any:
        at = _position(f, i, axis, transform)
        return (at < 0.0) | (at > f.number(axis.old) - 1.0)

    return table(c, "resize_outside", [axis.new], is_outside, "bool", axis.old)


def repeated_taps(c: OpContext, axis: ResizedAxis, factor: int, mode: str, transform: str, dtype: str) -> Taps:
    """Returns ``taps`` for an axis in which every element becomes ``factor``, with weights that do not depend on its
    position.
    """
    middle = 8  # of enough elements that no tap of the middle one is outside
    known = taps(c, ResizedAxis(axis.axis, 2 * middle, 2 * middle * factor, float(factor)), mode, transform, dtype)
    row = slice(middle * factor, (middle + 1) * factor)
    source, weight = _array(known.source)[row], _array(known.weight)[row]
    return Taps(source - middle, weight, factor)


def _array(operand: Operand) -> Array:
    assert isinstance(operand, np.ndarray)
    return operand


def _kernel(f: Formulas, mode: str, a: float, distance: Any) -> Any:
    """Returns the interpolation kernel at a distance in source elements."""
    d = f.absolute(distance)
    if mode == "linear":
        return f.within(1.0 - d, 0.0, 1.0)
    inner = (a + 2) * d * d * d - (a + 3) * d * d + 1.0
    outer = a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a
    return f.chosen(d <= 1.0, inner, f.chosen(d < 2.0, outer, f.number(0.0)))


def _position(f: Formulas, i: Any, axis: ResizedAxis, transform: str) -> Any:
    """Returns the source coordinate of output element ``i``."""
    old, new = f.number(axis.old), f.number(axis.new)
    scale = new / old if axis.scale is None else f.number(axis.scale)
    start, end = axis.roi
    match transform:
        case "align_corners":
            return f.chosen(new > 1.0, i * (old - 1.0) / (new - 1.0), i * 0.0)
        case "asymmetric":
            return i / scale
        case "tf_crop_and_resize":
            spread = start * (old - 1.0) + i * (end - start) * (old - 1.0) / (new - 1.0)
            return f.chosen(new > 1.0, spread, i * 0.0 + 0.5 * (start + end) * (old - 1.0))
        case "pytorch_half_pixel":
            return f.chosen(new > 1.0, (i + 0.5) / scale - 0.5, i * 0.0)
        case "tf_half_pixel_for_nn":
            at = (i + 0.5) / scale
            # Of all transformations this one alone would move the elements of an axis that keeps its extent.
            return f.chosen(f.absolute(new - old) < 0.5, i, at) if axis.scale is None else at
        case "half_pixel_symmetric":
            return old / 2.0 * (1.0 - new / (scale * old)) + (i + 0.5) / scale - 0.5
        case _:
            return (i + 0.5) / scale - 0.5


def _rounded(f: Formulas, x: Any, mode: str) -> Any:
    match mode:
        case "floor":
            return f.floor(x)
        case "ceil":
            return f.ceil(x)
        case "round_prefer_ceil":
            return f.floor(x + 0.5)
        case _:
            return f.ceil(x - 0.5)
