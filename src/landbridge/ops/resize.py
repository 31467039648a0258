"""Resize and Upsample: one axis after another, from tables of source positions computed at import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value, accumulator, is_float
from landbridge.ir.types import LARGEST_CONSTANT, check_size
from landbridge.ops.accuracy import Accuracy, accuracy
from landbridge.ops.context import Array, Buffer, OpContext, Operand
from landbridge.ops.legal import at_least, axis_of, distinct_axes, holds, one_of
from landbridge.ops.registry import operator
from landbridge.ops.rules import rules
from landbridge.ops.slicing import index_within

_SCALES = holds("len(it) == len(S) and all(0 < v < 2**31 for v in it)", "a number above 0 for each axis")

#: nearest is exact; the others are sums of a few taps for each axis.
WEIGHTED = Accuracy(
    16,
    sums=True,
    note="the condition is the sum of |weight * x|, of f64 and the largest |x|, as weights are f64; nearest is exact",
)


@dataclass(frozen=True)
class _Axis:
    """One axis to resize: extents before and after, the scale, and the region of interest."""

    axis: int
    old: int
    new: int
    scale: float
    roi: tuple[float, float]


@rules(
    "X: *S",
    "scales?: _",
    attributes={
        "scales": _SCALES,
        "mode": one_of("nearest", "linear"),
    },
    where=("prod(S) > 0",),
)
@operator("Upsample", since=7)
@accuracy(WEIGHTED)
def upsample(c: OpContext, x: Operand, scales: Operand | None = None) -> Operand:
    """Resize of opsets before 10: asymmetric coordinates, floor."""
    factors = c.attribute("scales") if scales is None else c.constant(scales, "scales").reshape(-1)
    axes = [
        _Axis(a, e, int(np.floor(e * f)), float(f), (0.0, 1.0))
        for a, (e, f) in enumerate(zip(c.shape(x), factors, strict=True))
    ]
    return _resize(c, x, axes, c.attribute("mode", "nearest"), "asymmetric", "floor")


@rules(
    "X: *S",
    "scales: _",
    attributes={
        "scales": _SCALES,
        "mode": one_of("nearest", "linear"),
    },
    where=("prod(S) > 0",),
)
@operator("Resize", since=10)
@accuracy(WEIGHTED)
def resize_10(c: OpContext, x: Operand, scales: Operand) -> Operand:
    """The first Resize: as Upsample, with scales as an input."""
    y: Operand = upsample(c, x, scales)
    return y


@rules(
    "X: *S",
    "roi?: _",
    "scales?: _",
    "sizes?: _",
    attributes={
        "axes": axis_of("len(S)"),
        "scales": holds("all(0 < v < 2**31 for v in it)", "numbers above 0"),
        "sizes": at_least(1, below=1 << 40),
        "mode": one_of("nearest", "linear", "cubic"),
        "coordinate_transformation_mode": one_of(
            "half_pixel",
            "half_pixel_symmetric",
            "pytorch_half_pixel",
            "align_corners",
            "asymmetric",
            "tf_crop_and_resize",
            "tf_half_pixel_for_nn",
        ),
        "nearest_mode": one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        "keep_aspect_ratio_policy": one_of("stretch", "not_larger", "not_smaller"),
        "cubic_coeff_a": holds("it - it == 0", "finite"),
        "roi": holds("all(v - v == 0 for v in it)", "finite"),
    },
    where=(
        distinct_axes("len(S)"),
        "prod(S) > 0",
    ),
)
@operator("Resize", since=11)
@accuracy(WEIGHTED)
def resize(
    c: OpContext,
    x: Operand,
    roi: Operand | None = None,
    scales: Operand | None = None,
    sizes: Operand | None = None,
) -> Operand:
    """nearest, linear and cubic, every coordinate transformation."""
    shape = c.shape(x)
    axes = [c.axis(a, len(shape)) for a in c.ints("axes") or range(len(shape))]
    regions = np.tile([[0.0], [1.0]], len(axes))
    transform = c.attribute("coordinate_transformation_mode", "half_pixel")
    if roi is not None and transform == "tf_crop_and_resize":
        regions = c.constant(roi, "roi").astype(np.float64).reshape(2, -1)
    chosen: list[_Axis] = []
    given = None if scales is None else c.constant(scales, "scales").astype(np.float64).reshape(-1)
    wanted = c.ints("sizes", sizes) if sizes is not None else None
    factors = _keep_aspect(c, wanted, [shape[a] for a in axes])
    for i, a in enumerate(axes):
        region = (float(regions[0][i]), float(regions[1][i]))
        if given is not None and given.size:
            scale = float(given[i])
            span = region[1] - region[0] if transform == "tf_crop_and_resize" else 1.0
            new = int(np.floor(shape[a] * span * scale))
        elif wanted is not None:
            scale = factors[i] if factors else wanted[i] / shape[a]
            new = int(np.floor(shape[a] * scale + 0.5)) if factors else wanted[i]
        else:
            raise c.unsupported("it has neither scales nor sizes")
        chosen.append(_Axis(a, shape[a], new, scale, region))
    return _resize(
        c, x, chosen, c.attribute("mode", "nearest"), transform, c.attribute("nearest_mode", "round_prefer_floor")
    )


def _keep_aspect(c: OpContext, sizes: Sequence[int] | None, shape: Sequence[int]) -> list[float] | None:
    """One scale for all axes when ``keep_aspect_ratio_policy`` asks for it."""
    policy = c.attribute("keep_aspect_ratio_policy", "stretch")
    if sizes is None or policy == "stretch":
        return None
    ratios = [s / e for s, e in zip(sizes, shape, strict=True)]
    return [min(ratios) if policy == "not_larger" else max(ratios)] * len(ratios)


def _positions(axis: _Axis, transform: str) -> Array:
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


def _resize(c: OpContext, x: Operand, axes: Sequence[_Axis], mode: str, transform: str, nearest: str) -> Operand:
    fill = c.attribute("extrapolation_value", 0.0) if transform == "tf_crop_and_resize" else None
    moved, dtype = [a for a in axes if a.old != a.new or a.scale != 1 or fill is not None], c.dtype(x)
    if mode == "nearest":
        tables = []
        for a in moved:
            at = _positions(a, transform)
            index = np.clip(_rounded(at, nearest), 0, a.old - 1).astype(np.int64)
            tables.append(np.where((at < 0) | (at > a.old - 1), -1, index) if fill is not None else index)
        return _nearest(c, x, moved, tables, fill)
    for a in moved:
        if a.old == 1 and a.new == 1:
            continue
        x = _weighted(c, x, a, *_taps(c, a, mode, transform, fill is not None), fill)
    return c.cast(x, dtype)  # once, not between the axes


def _nearest(c: OpContext, x: Operand, axes: Sequence[_Axis], tables: Sequence[Array], fill: float | None) -> Operand:
    """Copies; an affine read when every axis grows by a whole factor."""
    shape, dtype = list(c.shape(x)), c.dtype(x)
    whole: dict[int, int] = {}
    for a, table in zip(axes, tables, strict=True):
        shape[a.axis] = a.new
        factor = a.new // a.old if a.old else 0
        if factor and np.array_equal(table, np.arange(a.new) // factor):
            whole[a.axis] = factor
    if len(whole) == len(axes):
        return c.gather(
            "resize_nearest", x, shape, lambda *d: [v // whole[i] if i in whole else v for i, v in enumerate(d)]
        )

    def body(s: ScalarBuilder, buffers: Sequence[Buffer], at: Sequence[Value]) -> Value:
        where, outside = list(at), s.const(False, "bool")
        for a, table in zip(axes, buffers[1:], strict=True):
            index = table.load(s, [at[a.axis]])
            if fill is not None:
                outside = outside | (index < 0)
            where[a.axis] = index_within(s, index, a.old)
        value = buffers[0].load(s, where)
        return value if fill is None else s.select(outside, s.const(fill, dtype), value)

    return c.compute("resize_nearest", [x, *tables], shape, body, dtype)


def _kernel(c: OpContext, mode: str, distance: Array) -> Array:
    """The interpolation kernel at a distance in source elements."""
    d = np.abs(distance)
    a: float = c.attribute("cubic_coeff_a", -0.75)
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    cubic = np.where(d <= 1, near, np.where(d < 2, far, 0))
    weights: Array = np.maximum(1 - d, 0) if mode == "linear" else cubic
    return weights


def _taps(c: OpContext, axis: _Axis, mode: str, transform: str, crop: bool) -> tuple[Array, Array, Array | None]:
    """(source index, weight) of every tap of every output element, and which elements lie outside."""
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


def _weighted(
    c: OpContext,
    x: Operand,
    axis: _Axis,
    source: Array,
    weights: Array,
    outside: Array | None,
    fill: float | None,
) -> Operand:
    """The weighted sum of the taps along one axis, in the accumulator of the dtype, of integers in f32."""
    shape, dtype = list(c.shape(x)), c.dtype(x)
    shape[axis.axis] = axis.new
    rank, taps = len(shape), source.shape[1]
    inner = accumulator(dtype) if is_float(dtype) else "float32"
    kind: Any = numpy_dtype(inner)

    def build(p: PrimBuilder) -> None:
        data, index = (Buffer(b, p.dtype(b)) for b in p.inputs[:2])
        total = p.outputs[0]

        def body(s: ScalarBuilder, acc: Value, weight: Value) -> Value:
            at = [s.index(d) for d in range(rank)]
            at[axis.axis] = index_within(s, index.load(s, [at[axis.axis], s.index(rank)]), axis.old)
            return acc + s.cast(data.load(s, at), inner) * weight

        p.generic(
            "p" * rank + "r",
            (*shape, taps),
            [(p.inputs[2], lambda *d: [d[axis.axis], d[rank]])],
            [(total, lambda *d: d[:rank])],
            body,
            init=0,
        )

    result: Operand = c.g.call(
        "resize", [c.value(v) for v in (x, source, weights.astype(kind))], [(shape, inner)], build
    )[0]
    if outside is not None and outside.any():
        column = outside.reshape([-1 if a == axis.axis else 1 for a in range(rank)])
        result = c.elementwise(
            "extrapolate", [column, result], lambda s, q, v: s.select(q, s.const(fill or 0.0, inner), v), inner
        )
    return result
