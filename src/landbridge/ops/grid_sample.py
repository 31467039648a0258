"""GridSample: elements at positions that the model computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.scalars import Number, ScalarBuilder, Value
from landbridge.ops.accuracy import accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import one_of
from landbridge.ops.registry import operator
from landbridge.ops.rules import rules
from landbridge.ops.slicing import index_within

#: (whole source index, weight) of the taps along one axis.
Taps = list[tuple[Value, Number]]


@rules(
    "X: N C *D",
    "grid: N *O r",
    attributes={
        "mode": one_of("nearest", "linear", "bilinear", "cubic", "bicubic"),
        "padding_mode": one_of("zeros", "border", "reflection"),
        "align_corners": one_of(0, 1),
    },
    where=("len(D) > 0 and r == len(D) and len(O) == len(D)", "min(D) > 0 or prod(O) == 0"),
)
@operator("GridSample")
@accuracy(ulp=8, sums=True, note="the condition is the extent of an axis times the magnitudes of the taps")
def grid_sample(c: OpContext, x: Operand, grid: Operand) -> Operand:
    """``x`` [N, C, spatial] at ``grid`` [N, output, rank], coordinates -1 to 1, last axis first."""
    (n, channels, *spatial), rank = c.shape(x), c.rank(x) - 2
    align = bool(c.attribute("align_corners", 0))
    padding = c.attribute("padding_mode", "zeros")
    taps = _taps(c, c.attribute("mode", "linear"))

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        batch, channel, *pixel = at
        dtype = "float64" if "float64" in (c.dtype(x), c.dtype(grid)) else accumulator(c.dtype(grid))
        axes: list[Taps] = []
        for a, extent in enumerate(spatial):
            v = s.cast(buffers[1].load(s, [batch, *pixel, rank - 1 - a]), dtype)
            low, high = (0.0, extent - 1.0) if align else (-0.5, extent - 0.5)
            where = (v + 1.0) * ((high - low) / 2) + low
            axes.append(taps(s, _padded(s, where, low, high, extent, padding)))
        total: Value | None = None
        for corner in product(*axes):
            inside: Value | None = None
            index, weight = [], s.const(1.0, dtype)
            for (position, w), extent in zip(corner, spatial, strict=True):
                kept = s.minimum(s.maximum(position, 0.0), extent - 1.0)
                if padding == "reflection":
                    low, high = (0.0, extent - 1.0) if align else (-0.5, extent - 0.5)
                    kept = s.minimum(s.maximum(_reflected(s, position, low, high), 0.0), extent - 1.0)
                test = position.eq(kept)
                inside = test if inside is None else inside & test
                index.append(index_within(s, kept, extent))  # NaN has no place
                weight = weight * w
            value = s.cast(buffers[0].load(s, [batch, channel, *index]), dtype)
            if padding == "zeros" and inside is not None:
                value = s.select(inside, value, 0.0)
            total = value * weight if total is None else total + value * weight
        if total is None:
            raise c.unsupported("a grid without spatial axes")
        return s.cast(total, c.dtype(x))

    result = (n, channels, *c.shape(grid)[1:-1])
    return c.compute("grid_sample", [x, grid], result, body, c.dtype(x))


def _reflected(s: ScalarBuilder, v: Value, low: float, high: float) -> Value:
    """A coordinate thrown back at both ends until it lies between them."""
    span = high - low
    if span <= 0:
        return v * 0.0 + low
    away = s.math("abs", v - low)
    t = away - s.math("floor", away * (0.5 / span)) * (2 * span)
    return s.select(t > span, 2 * span - t, t) + low


def _padded(s: ScalarBuilder, v: Value, low: float, high: float, extent: int, padding: str) -> Value:
    """A coordinate as ``padding`` moves it."""
    if padding == "border":
        return s.minimum(s.maximum(v, 0.0), extent - 1.0)
    return _reflected(s, v, low, high) if padding == "reflection" else v


def _taps(c: OpContext, mode: str) -> Callable[[ScalarBuilder, Value], Taps]:
    """Positions and weights around a coordinate."""

    def nearest(s: ScalarBuilder, v: Value) -> Taps:
        return [(s.math("round_even", v), 1.0)]

    def linear(s: ScalarBuilder, v: Value) -> Taps:
        base = s.math("floor", v)
        rest = v - base
        return [(base, 1.0 - rest), (base + 1.0, rest)]

    def cubic(s: ScalarBuilder, v: Value) -> Taps:
        base = s.math("floor", v)
        t, a = v - base, -0.75

        def near(d: Value) -> Value:
            return ((a + 2) * d - (a + 3)) * d * d + 1.0

        def far(d: Value) -> Value:
            return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

        weights = [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
        return [(base + float(i - 1), w) for i, w in enumerate(weights)]

    forms = {"nearest": nearest, "linear": linear, "bilinear": linear, "cubic": cubic, "bicubic": cubic}
    if mode not in forms:
        raise c.unsupported(f"mode {mode!r}; known: {', '.join(forms)}")
    return forms[mode]
