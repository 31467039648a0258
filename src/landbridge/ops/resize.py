"""Resize and Upsample: one axis after another, from tables of source positions computed at import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator, is_float
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops import resize_tables
from landbridge.ops.accuracy import Accuracy, accuracy
from landbridge.ops.context import Array, BodyBuffer, OpContext, Operand
from landbridge.ops.legal import at_least, axis_of, distinct_axes, holds, one_of
from landbridge.ops.registry import Handler, operator
from landbridge.ops.resize_tables import ResizedAxis
from landbridge.ops.rules import rules
from landbridge.ops.slicing import index_within
from landbridge.sizes.size import Extent, Size, agree

#: nearest is exact; the others are sums of a few taps for each axis.
WEIGHTED = Accuracy(
    16,
    sums=True,
    note="the condition is the sum of |weight * x|, of f64 and the largest |x|, as weights are f64; nearest is exact",
)


def _scaled_rules(scales: str) -> Callable[[Handler], Handler]:
    """The rules of operators before opset 11, with that of their operand ``scales``."""
    return rules(
        "X: *S",
        scales,
        attributes={
            "scales": holds("len(it) == len(S) and all(0 < v < 2**31 for v in it)", "a number above 0 for each axis"),
            "mode": one_of("nearest", "linear"),
        },
        where=("prod(S) > 0",),
    )


@_scaled_rules("scales?: _")
@operator("Upsample", since=7)
@accuracy(WEIGHTED)
def upsample(c: OpContext, x: Operand, scales: Operand | None = None) -> Operand:
    """Resize of opsets before 10: asymmetric coordinates, floor."""
    factors = c.attribute("scales") if scales is None else c.constant(scales, "scales").reshape(-1)
    axes = [
        ResizedAxis(a, e, _scaled(c, e, float(f)), float(f))
        for a, (e, f) in enumerate(zip(c.shape(x), factors, strict=True))
    ]
    return _resize(c, x, axes, c.attribute("mode", "nearest"), "asymmetric", "floor")


@_scaled_rules("scales: _")
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
    chosen: list[ResizedAxis] = []
    given = None if scales is None else c.constant(scales, "scales").astype(np.float64).reshape(-1)
    wanted = c.ints("sizes", sizes) if sizes is not None else None
    factors = _keep_aspect(c, wanted, [shape[a] for a in axes])
    for i, a in enumerate(axes):
        region = (float(regions[0][i]), float(regions[1][i]))
        if given is not None and given.size:
            scale = float(given[i])
            span = region[1] - region[0] if transform == "tf_crop_and_resize" else 1.0
            new = _scaled(c, shape[a], span * scale)
        elif wanted is not None:
            scale = factors[i] if factors else _ratio(c, wanted[i], shape[a])
            new = int(np.floor(shape[a] * scale + 0.5)) if factors else wanted[i]
        else:
            raise c.unsupported("it has neither scales nor sizes")
        chosen.append(ResizedAxis(a, shape[a], new, scale, region))
    return _resize(
        c, x, chosen, c.attribute("mode", "nearest"), transform, c.attribute("nearest_mode", "round_prefer_floor")
    )


def _scaled(c: OpContext, extent: Extent, scale: float) -> int:
    """``extent * scale``, rounded down; an open extent must grow by a whole factor."""
    if isinstance(extent, Size) and not scale.is_integer():
        raise c.unsupported(f"it resizes {extent}, which is known when the input comes, by {scale}; fix its shape")
    return cast(int, extent * int(scale)) if isinstance(extent, Size) else int(np.floor(extent * scale))


def _ratio(c: OpContext, new: Extent, old: Extent) -> float:
    """``new / old``; where they are open, a whole number."""
    if isinstance(new, int) and isinstance(old, int):
        return new / old
    factor = new // old
    if not isinstance(factor, int) or not agree(factor * old, new):
        raise c.unsupported(f"it resizes {old}, which is known when the input comes, to {new}; fix its shape")
    return float(factor)


def _keep_aspect(c: OpContext, sizes: Sequence[int] | None, shape: Sequence[int]) -> list[float] | None:
    """One scale for all axes when ``keep_aspect_ratio_policy`` asks for it."""
    policy = c.attribute("keep_aspect_ratio_policy", "stretch")
    if sizes is None or policy == "stretch":
        return None
    if any(isinstance(e, Size) for e in (*sizes, *shape)):
        raise c.unsupported(f"keep_aspect_ratio_policy {policy!r} of {shape} to {sizes}; give these axes numbers")
    ratios = [s / e for s, e in zip(sizes, shape, strict=True)]
    return [min(ratios) if policy == "not_larger" else max(ratios)] * len(ratios)


def _resize(c: OpContext, x: Operand, axes: Sequence[ResizedAxis], mode: str, transform: str, nearest: str) -> Operand:
    fill = c.attribute("extrapolation_value", 0.0) if transform == "tf_crop_and_resize" else None
    moved, dtype = [a for a in axes if a.old != a.new or a.scale != 1 or fill is not None], c.dtype(x)
    if mode == "nearest":
        tables = [_table(c, a, transform, nearest, fill is not None) for a in moved]
        return _nearest(c, x, moved, tables, fill)
    for a in moved:
        if a.old == 1 and a.new == 1:
            continue
        x = _weighted(c, x, a, *_taps(c, a, mode, transform, fill is not None), fill)
    return c.cast(x, dtype)  # once, not between the axes


def _taps(c: OpContext, axis: ResizedAxis, mode: str, transform: str, crop: bool) -> tuple[Array, Array, Array | None]:
    """Source and weight of each tap; of an open axis those of the elements that one of the source becomes."""
    if not isinstance(axis.old, Size):
        return resize_tables.taps(c, axis, mode, transform, crop)
    repeats = transform in ("asymmetric", "half_pixel", "half_pixel_symmetric")
    if not repeats or c.attribute("exclude_outside", 0):
        excluded = " without what is outside" * bool(c.attribute("exclude_outside", 0))
        raise c.unsupported(
            f"it interpolates along {axis.old}, which is known when the input comes, by {transform!r}{excluded}: its "
            "weights depend on the extent; fix its shape"
        )
    return *resize_tables.repeated_taps(c, axis, mode, transform), None


def _table(c: OpContext, axis: ResizedAxis, transform: str, rounding: str, crop: bool) -> Array | None:
    """Where each element of a resized axis is from; None for an open one, whose elements are repeated in place."""
    if not isinstance(axis.old, Size):
        return resize_tables.nearest(axis, transform, rounding, crop)
    repeats = (transform == "asymmetric" and rounding == "floor") or (
        transform in ("half_pixel", "half_pixel_symmetric") and rounding.startswith("round")
    )
    if crop or not repeats:
        raise c.unsupported(
            f"it resizes {axis.old}, which is known when the input comes, by {transform!r}, {rounding!r}; fix its shape"
        )
    return None


def _nearest(
    c: OpContext, x: Operand, axes: Sequence[ResizedAxis], tables: Sequence[Array | None], fill: float | None
) -> Operand:
    """Copies; an affine read when every axis grows by a whole factor."""
    shape, dtype = list(c.shape(x)), c.dtype(x)
    whole: dict[int, int] = {}
    for a, table in zip(axes, tables, strict=True):
        shape[a.axis] = a.new
        factor = a.new // a.old if a.old else 0
        if table is None or (factor and np.array_equal(table, np.arange(a.new) // factor)):
            whole[a.axis] = factor
    if len(whole) == len(axes):
        return c.gather(
            "resize_nearest", x, shape, lambda *d: [v // whole[i] if i in whole else v for i, v in enumerate(d)]
        )

    known = [table for table in tables if table is not None]
    if len(known) < len(axes):
        raise c.unsupported("it resizes open axes, and others by no whole factor; fix its shape")

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        where, outside = list(at), s.const(False, "bool")
        for a, table in zip(axes, buffers[1:], strict=True):
            index = table.load(s, [at[a.axis]])
            if fill is not None:
                outside = outside | (index < 0)
            where[a.axis] = index_within(s, index, a.old)
        value = buffers[0].load(s, where)
        return value if fill is None else s.select(outside, s.const(fill, dtype), value)

    return c.compute("resize_nearest", [x, *known], shape, body, dtype)


def _weighted(
    c: OpContext,
    x: Operand,
    axis: ResizedAxis,
    source: Array,
    weights: Array,
    outside: Array | None,
    fill: float | None,
) -> Operand:
    """The weighted sum of the taps along one axis, in the accumulator of the dtype, of integers in f32.

    The taps of an open axis are for one element of the source, and count from it.
    """
    shape, dtype = list(c.shape(x)), c.dtype(x)
    shape[axis.axis] = axis.new
    rank, taps = len(shape), source.shape[1]
    inner = accumulator(dtype) if is_float(dtype) else "float32"
    kind: Any = numpy_dtype(inner)
    factor = source.shape[0] if isinstance(axis.old, Size) else None

    def build(p: PrimBuilder) -> None:
        data, index = (BodyBuffer(b, p.dtype(b)) for b in p.inputs[:2])
        total = p.outputs[0]

        def body(s: ScalarBuilder, acc: Value, weight: Value) -> Value:
            at = [s.index(d) for d in range(rank)]
            place = at[axis.axis]
            if factor is None:
                position = index.load(s, [place, s.index(rank)])
            else:
                element = s.binary("floordiv", place, factor)
                position = index.load(s, [place - element * factor, s.index(rank)]) + s.cast(element, "int64")
            at[axis.axis] = index_within(s, position, axis.old)
            return acc + s.cast(data.load(s, at), inner) * weight

        p.generic(
            "p" * rank + "r",
            (*shape, taps),
            [(p.inputs[2], lambda *d: [d[axis.axis] if factor is None else d[axis.axis] % factor, d[rank]])],
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
