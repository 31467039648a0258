"""Resize and Upsample: one axis after another, from tables of source positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any, cast

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.errors import ShapeError
from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator, is_float
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import Handler, kernel
from landbridge.ops import resize_tables
from landbridge.ops.accuracy import Accuracy, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import at_least, axis_of, distinct_axes, holds, one_of
from landbridge.ops.resize_tables import RegularTap, ResizedAxis, Taps
from landbridge.ops.rules import rules
from landbridge.ops.slicing import index_within
from landbridge.sizes.scaled import meant, scaled
from landbridge.sizes.size import Extent, Size, same

#: nearest is exact; the others are sums of a few taps for each axis.
WEIGHTED = Accuracy(
    16,
    sums=True,
    note="the condition is the sum of |weight * x|, of f64 and the largest |x|, as weights are f64; nearest is exact",
)


def _scaled_rules(scales: str) -> Callable[[Handler], Handler]:
    """Returns the rules of operators before opset 11, with that of their operand ``scales``."""
    return rules(
        "X: *S",
        scales,
        attributes={
            "scales": holds("len(it) == len(S) and all(0 < v < 2**31 for v in it)", "a number above 0 for each axis"),
            "mode": one_of("nearest", "linear"),
        },
    )


@_scaled_rules("scales?: _")
@kernel("", "Upsample", since=7)
@accuracy(WEIGHTED)
def upsample(c: OpContext, x: Operand, scales: Operand | None = None) -> Operand:
    """Resizes as before opset 10: asymmetric coordinates, floor."""
    factors = c.attribute("scales") if scales is None else c.constant(scales, "scales").reshape(-1)
    axes = [
        ResizedAxis(a, e, scaled(e, float(f)), float(meant(float(f))))
        for a, (e, f) in enumerate(zip(c.shape(x), factors, strict=True))
    ]
    return _resize(c, x, axes, c.attribute("mode", "nearest"), "asymmetric", "floor")


@_scaled_rules("scales: _")
@kernel("", "Resize", since=10)
@accuracy(WEIGHTED)
def resize_10(c: OpContext, x: Operand, scales: Operand) -> Operand:
    """Resizes as Upsample does, with scales as an input (opset 10)."""
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
        "sizes": at_least(0, below=1 << 40),
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
    where=(distinct_axes("len(S)"),),
)
@kernel("", "Resize", since=11)
@accuracy(WEIGHTED)
def resize(
    c: OpContext,
    x: Operand,
    roi: Operand | None = None,
    scales: Operand | None = None,
    sizes: Operand | None = None,
) -> Operand:
    """Resizes with nearest, linear or cubic interpolation and every coordinate transformation."""
    shape = c.shape(x)
    axes = [c.axis(a, len(shape)) for a in c.ints("axes") or range(len(shape))]
    regions = np.tile([[0.0], [1.0]], len(axes))
    transform = c.attribute("coordinate_transformation_mode", "half_pixel")
    if roi is not None and transform == "tf_crop_and_resize":
        regions = c.constant(roi, "roi").astype(np.float64).reshape(2, -1)
    chosen: list[ResizedAxis] = []
    scale: float | None
    new: Extent
    given = None if scales is None else c.constant(scales, "scales").astype(np.float64).reshape(-1)
    wanted = c.ints("sizes", sizes) if sizes is not None else None
    by_scales = given is not None and given.size > 0
    count = len(given) if given is not None and by_scales else len(wanted or axes)
    if count != len(axes):
        raise ShapeError(
            f"{c.g.node}: {'scales' if by_scales else 'sizes'} has {count} elements; {len(axes)} are legal, one for "
            "each axis that is resized"
        )
    factors = _keep_aspect(c, wanted, [shape[a] for a in axes])
    for i, a in enumerate(axes):
        region = (float(regions[0][i]), float(regions[1][i]))
        if given is not None and given.size:
            scale = float(meant(float(given[i])))
            # of a region too: ONNX's text multiplies by its share, but no implementation does
            new = scaled(shape[a], scale)
        elif wanted is not None:
            if wanted[i] == 0 and shape[a] != 0:
                raise ShapeError(
                    f"{c.g.node}: sizes are {tuple(wanted)}; an axis of {shape[a]} elements may get 1 and more"
                )
            scale = factors[i] if factors else _ratio(wanted[i], shape[a])
            new = int(np.floor(shape[a] * factors[i] + 0.5)) if factors else wanted[i]
        else:
            raise c.unsupported("it has neither scales nor sizes")
        chosen.append(ResizedAxis(a, shape[a], new, scale, region))
    return _resize(
        c, x, chosen, c.attribute("mode", "nearest"), transform, c.attribute("nearest_mode", "round_prefer_floor")
    )


def _ratio(new: Extent, old: Extent) -> float | None:
    """Returns ``new / old``, and 1 where ``old`` is 0; None where it is open."""
    if isinstance(new, int) and isinstance(old, int):
        return new / old if old else 1.0
    factor = new // old
    return float(factor) if isinstance(factor, int) and same(factor * old, new) else None


def _keep_aspect(c: OpContext, sizes: Sequence[int] | None, shape: Sequence[int]) -> list[float] | None:
    """Returns one scale for all axes when ``keep_aspect_ratio_policy`` requests it."""
    policy = c.attribute("keep_aspect_ratio_policy", "stretch")
    if sizes is None or policy == "stretch":
        return None
    if any(isinstance(e, Size) for e in (*sizes, *shape)):
        raise c.unsupported(f"keep_aspect_ratio_policy {policy!r} of {shape} to {sizes}; give these axes numbers")
    ratios = [s / e for s, e in zip(sizes, shape, strict=True) if e] or [1.0]
    return [min(ratios) if policy == "not_larger" else max(ratios)] * len(sizes)


def _resize(c: OpContext, x: Operand, axes: Sequence[ResizedAxis], mode: str, transform: str, nearest: str) -> Operand:
    if (empty := _without_elements(c, x, axes)) is not None:
        return empty
    fill = c.attribute("extrapolation_value", 0.0) if transform == "tf_crop_and_resize" else None
    moved, dtype = [a for a in axes if a.old != a.new or a.scale != 1 or fill is not None], c.dtype(x)
    if mode == "nearest":
        return _nearest(c, x, moved, transform, nearest, fill)
    inner = accumulator(dtype) if is_float(dtype) else "float32"  # integers are summed in f32
    for a in moved:
        if a.old == 1 and a.new == 1:
            continue
        x = _weighted(c, x, a, _taps(c, a, mode, transform, inner), inner)
        if fill is not None:
            x = _filled(c, x, a, transform, fill)
    return c.cast(x, dtype)  # once, not between the axes


def _without_elements(c: OpContext, x: Operand, axes: Sequence[ResizedAxis]) -> Operand | None:
    """Returns a result without elements; None where it has some.

    Raises ShapeError where an axis of extent 0 is to get elements.
    """
    old = c.shape(x)
    shape = list(old)
    for a in axes:
        if a.old == 0 and a.new != 0:
            raise ShapeError(
                f"{c.g.node}: it must hold that X has elements along axis {a.axis}, which is resized from 0 to "
                f"{a.new}; the shape of X is {tuple(old)}"
            )
        shape[a.axis] = cast(int, a.new)
    return c.g.reshape(c.value(np.zeros(0, numpy_dtype(c.dtype(x)))), shape) if 0 in shape else None


def _taps(c: OpContext, axis: ResizedAxis, mode: str, transform: str, dtype: str) -> Taps:
    """Returns source and weight of each tap; for an open axis that grows by an integer factor, those of one element's
    copies.
    """
    repeats = transform in ("asymmetric", "half_pixel", "half_pixel_symmetric") and not c.attribute(
        "exclude_outside", 0
    )
    factor = _open_factor(axis)
    if factor and repeats:
        return resize_tables.repeated_taps(c, axis, factor, mode, transform, dtype)
    return resize_tables.taps(c, axis, mode, transform, dtype)


def _repeats(axis: ResizedAxis, transform: str, rounding: str, crop: bool, table: Operand | None) -> int:
    """Returns how often each source element is repeated consecutively in a resized axis; 0 where that differs."""
    if isinstance(table, np.ndarray):
        assert isinstance(axis.old, int) and isinstance(axis.new, int)
        factor = axis.new // axis.old if axis.old else 0
        return factor if factor and np.array_equal(table, np.arange(axis.new) // factor) else 0
    in_place = (transform == "asymmetric" and rounding == "floor") or (
        transform in ("half_pixel", "half_pixel_symmetric") and rounding.startswith("round")
    )
    return _open_factor(axis) if in_place and not crop else 0


def _open_factor(axis: ResizedAxis) -> int:
    """Returns the whole factor by which an open axis grows; 0 where there is none."""
    whole = isinstance(axis.old, Size) and axis.scale is not None and axis.scale.is_integer()
    return int(axis.scale or 0) if whole else 0


def _nearest(
    c: OpContext, x: Operand, axes: Sequence[ResizedAxis], transform: str, rounding: str, fill: float | None
) -> Operand:
    """Copies elements; it is an affine read when every axis grows by an integer factor."""
    shape, dtype, crop = list(c.shape(x)), c.dtype(x), fill is not None
    factors: dict[int, int] = {}
    tables: dict[int, Operand] = {}
    for a in axes:
        shape[a.axis] = cast(int, a.new)
        table = None if a.is_open else resize_tables.nearest(c, a, transform, rounding, crop)
        factor = _repeats(a, transform, rounding, crop, table)
        if factor:
            factors[a.axis] = factor
        else:
            tables[a.axis] = resize_tables.nearest(c, a, transform, rounding, crop) if table is None else table
    regular = {a: found for a, table in tables.items() if (found := resize_tables.regular(table)) is not None}
    if len(regular) == len(tables):

        def location(i: int, v: Any) -> Any:
            if i in factors:
                return v // factors[i]
            return v * regular[i].step + regular[i].first if i in regular else v

        return c.gather("resize_nearest", x, shape, lambda *d: [location(i, v) for i, v in enumerate(d)])

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        loads = dict(zip(tables, buffers[1:], strict=True))
        where, outside = list(at), s.const(False, "bool")
        for a in axes:
            if a.axis in factors:
                where[a.axis] = s.binary("floordiv", at[a.axis], factors[a.axis])
                continue
            index = loads[a.axis].load(s, [at[a.axis]])
            if crop:
                outside = outside | (index < 0)
            where[a.axis] = index_within(s, index, a.old)
        value = buffers[0].load(s, where)
        return s.select(outside, s.const(fill or 0.0, dtype), value) if crop else value

    return c.compute("resize_nearest", [x, *tables.values()], shape, body, dtype)


def _weighted(c: OpContext, x: Operand, axis: ResizedAxis, taps: Taps, inner: str) -> Operand:
    """Returns the weighted sum of the taps along one axis, in ``inner``."""
    shape = list(c.shape(x))
    shape[axis.axis] = cast(int, axis.new)
    rank, count, factor = len(shape), c.shape(taps.source)[1], taps.factor
    if (steady := resize_tables.steady(taps)) is not None:
        return _by_stride(c, x, axis, steady, inner)

    def build(p: PrimBuilder) -> None:
        data, index = (BodyBuffer(b, p.dtype(b)) for b in p.inputs[:2])
        total = p.outputs[0]

        def body(s: ScalarBuilder, acc: Value, weight: Value) -> Value:
            at = [s.index(d) for d in range(rank)]
            location = at[axis.axis]
            if factor is None:
                position = index.load(s, [location, s.index(rank)])
            else:
                element = s.binary("floordiv", location, factor)
                position = index.load(s, [location - element * factor, s.index(rank)]) + s.cast(element, "int64")
            at[axis.axis] = index_within(s, position, axis.old)
            return acc + s.cast(data.load(s, at), inner) * weight

        p.generic(
            "p" * rank + "r",
            (*shape, count),
            [(p.inputs[2], lambda *d: [d[axis.axis] if factor is None else d[axis.axis] % factor, d[rank]])],
            [(total, lambda *d: d[:rank])],
            body,
            init=0,
        )

    operands = [c.value(v) for v in (x, taps.source, taps.weight)]
    result: Operand = c.g.call("resize", operands, [(shape, inner)], build)[0]
    return result


def _by_stride(c: OpContext, x: Operand, axis: ResizedAxis, taps: Sequence[RegularTap], inner: str) -> Operand:
    """Returns the weighted sum of taps that lie in the same way around each element, a whole number apart."""
    shape = list(c.shape(x))
    shape[axis.axis] = cast(int, axis.new)
    rank, a = len(shape), axis.axis

    def build(p: PrimBuilder) -> None:
        def total(s: ScalarBuilder, *values: Value) -> Value:
            parts = [s.cast(v, inner) * tap.weight for v, tap in zip(values, taps, strict=True)]
            return reduce(add, parts)

        def read(tap: RegularTap) -> Access:
            return p.inputs[0], lambda *d: [*d[:a], d[a] * tap.step + tap.first, *d[a + 1 :]]

        p.generic("p" * rank, shape, [read(tap) for tap in taps], [(p.outputs[0], lambda *d: d)], total)

    return c.g.call("resize", [c.value(x)], [(shape, inner)], build)[0]


def _filled(c: OpContext, x: Operand, axis: ResizedAxis, transform: str, fill: float) -> Operand:
    """Computes ``x``, resized along ``axis``, with ``fill`` where that lies outside the source."""
    column, dtype = resize_tables.outside(c, axis, transform), c.dtype(x)
    if isinstance(column, np.ndarray) and not column.any():
        return x
    column = c.reshape(column, [axis.new if a == axis.axis else 1 for a in range(c.rank(x))])
    return c.elementwise("extrapolate", [column, x], lambda s, q, v: s.select(q, s.const(fill, dtype), v), dtype)
