"""GridSample: samples elements at computed positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TypeAlias

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.scalars import Number, ScalarBuilder, Value
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import one_of
from landbridge.ops.rules import rules
from landbridge.ops.slicing import index_within
from landbridge.records import record
from landbridge.sizes.size import Extent, expected_size, never_below

#: How many elements an axis has, in the dtype of coordinates: a number, or what is known when the input comes.
_Length: TypeAlias = Value | float

#: Pixels of rows that have vectors enough to be tasks of their own.
_LONG_ROW = 32


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
@kernel("", "GridSample")
@accuracy(ulp=8, sums=True, note="the condition is the extent of an axis times the magnitudes of the taps")
def grid_sample(c: OpContext, x: Operand, grid: Operand) -> Operand:
    """Samples ``x`` [N, C, spatial] at ``grid`` [N, output, rank], coordinates -1 to 1, last axis first.

    Which elements lie around a coordinate, and their weights, is computed once for all channels.
    """
    (n, channels, *spatial), output = c.shape(x), c.shape(grid)[1:-1]
    if not spatial:
        raise c.unsupported("a grid without spatial axes")
    # Tasks are rows of the output where these are long, else images.
    cut = 1 if len(output) > 1 and expected_size(element_count(output[1:])) >= _LONG_ROW else 0
    rows, pixels = [n, *output[:cut]], element_count(output[cut:])
    dtype = "float64" if "float64" in (c.dtype(x), c.dtype(grid)) else accumulator(c.dtype(grid))
    sampling = _Sampling(
        tuple(spatial),
        bool(c.attribute("align_corners", 0)),
        c.attribute("padding_mode", "zeros"),
        _taps(c, c.attribute("mode", "linear")),
        dtype,
    )

    def build(p: PrimBuilder) -> None:
        _write_stages(p, sampling, rows, channels, pixels)

    source = c.reshape(x, (n, channels, element_count(spatial)))
    points = c.reshape(grid, (*rows, pixels, len(spatial)))
    shape = (n, channels, *output[:cut], pixels)
    created = c.g.call("grid_sample", [c.value(source), c.value(points)], [(shape, c.dtype(x))], build)[0]
    return c.reshape(created, (n, channels, *output))


def _write_stages(
    p: PrimBuilder, sampling: _Sampling, rows: Sequence[Extent], channels: Extent, pixels: Extent
) -> None:
    """Writes positions and weights of the pixels of each row, then every channel of it."""
    rank, last, shape = len(sampling.spatial), len(rows), [*rows, pixels]
    places = [p.temp(shape, sampling.location_dtype) for _ in sampling.corners]
    weights = [p.temp(shape, sampling.dtype) for _ in range(rank) for _ in range(sampling.weighted)]
    p.generic(
        "p" * len(shape),
        shape,
        [(p.inputs[1], lambda *d, a=a: [*d, rank - 1 - a]) for a in range(rank)],
        [(b, lambda *d: d) for b in (*places, *weights)],
        sampling.of_point,
    )
    source = BodyBuffer(p.inputs[0], p.dtype(p.inputs[0]))

    def value(s: ScalarBuilder, *read: Value) -> Value:
        total = sampling.total(s, source, [s.index(0), s.index(last)], read)
        return s.cast(total, p.dtype(p.outputs[0]))

    p.generic(
        "p" * (len(shape) + 1),
        [*rows, channels, pixels],
        [(b, lambda *d: [*d[:last], d[last + 1]]) for b in (*places, *weights)],
        [(p.outputs[0], lambda *d: [d[0], d[last], *d[1:last], d[last + 1]])],
        value,
    )


@record(frozen=True)
class _Sampling:
    """What is sampled of ``spatial`` axes around coordinates, which are computed with in ``dtype``."""

    spatial: tuple[Extent, ...]
    align: bool
    padding: str
    taps: _Taps
    dtype: str

    @property
    def corners(self) -> list[tuple[int, ...]]:
        """Returns the elements around a coordinate: which tap of each axis."""
        return list(product(range(self.taps.count), repeat=len(self.spatial)))

    @property
    def weighted(self) -> int:
        """Returns the number of weights along an axis; a single tap has none."""
        return self.taps.count if self.taps.count > 1 else 0

    @property
    def location_dtype(self) -> str:
        """Returns the dtype of an element's offset in a channel: vectors hold twice as many narrow ones."""
        return "int32" if never_below(element_count(self.spatial)) < 2**31 else "int64"

    def of_point(self, s: ScalarBuilder, *coordinates: Value) -> list[Value]:
        """Returns the offsets of the corners, below 0 outside, and the weights along each axis."""
        retained, inside, weights = [], [], []
        for v, axis in zip(coordinates, self.spatial, strict=True):
            extent = float(axis) if isinstance(axis, int) else s.const(axis, self.dtype)
            low, high = self._ends(extent)
            where = (s.cast(v, self.dtype) + 1.0) * ((high - low) / 2) + low
            # Cubic weights of a coordinate past the border differ from those at the border.
            if not (self.padding == "border" and self.taps.count > 2):
                where = _padded(s, where, low, high, extent, self.padding)
            along = self.taps.around(s, where)
            held = [self._held(s, position, extent) for position, _ in along]
            retained.append([s.cast(h, self.location_dtype) for h in held])
            inside.append([position.eq(h) for (position, _), h in zip(along, held, strict=True)])
            weights += [s.value(w, self.dtype) for _, w in along][: self.weighted]
        return [*(self._location(s, corner, retained, inside) for corner in self.corners), *weights]

    def _ends(self, extent: _Length) -> tuple[float, _Length]:
        return (0.0, extent - 1.0) if self.align else (-0.5, extent - 0.5)

    def _held(self, s: ScalarBuilder, position: Value, extent: _Length) -> Value:
        """Clamps ``position`` to the elements."""
        if self.padding == "reflection":
            position = _reflected(s, position, *self._ends(extent))
        return s.minimum(s.maximum(position, 0.0), extent - 1.0)

    def _location(
        self,
        s: ScalarBuilder,
        corner: Sequence[int],
        retained: Sequence[Sequence[Value]],
        inside: Sequence[Sequence[Value]],
    ) -> Value:
        location, held = retained[0][corner[0]], inside[0][corner[0]]
        for a, i in list(enumerate(corner))[1:]:
            location, held = location * self.spatial[a] + retained[a][i], held & inside[a][i]
        return s.select(held, location, -1) if self.padding == "zeros" else location

    def total(self, s: ScalarBuilder, source: BodyBuffer, plane: Sequence[Value], read: Sequence[Value]) -> Value:
        """Computes the weighted sum of the corners in one ``plane``, whose offsets and weights were ``read``."""
        corners, count = self.corners, self.weighted
        along = [read[len(corners) + a * count :][:count] for a in range(len(self.spatial))]
        total: Value | None = None
        for location, corner in zip(read, corners, strict=False):
            value = source.load(s, [*plane, index_within(s, location, element_count(self.spatial))])
            value = s.cast(value, self.dtype)
            if self.padding == "zeros":
                value = s.select(location < 0, 0.0, value)
            if count:
                weight = along[0][corner[0]]
                for a, i in list(enumerate(corner))[1:]:
                    weight = weight * along[a][i]
                value = value * weight
            total = value if total is None else total + value
        assert total is not None
        return total


def _reflected(s: ScalarBuilder, v: Value, low: float, high: _Length) -> Value:
    """Reflects a coordinate at both ends until it lies between them."""
    span, alone = high - low, v * 0.0 + low
    if not isinstance(span, Value) and span <= 0:
        return alone
    away = s.math("abs", v - low)
    t = away - s.math("floor", away * (0.5 / span)) * (2 * span)
    inside = s.select(t > span, 2 * span - t, t) + low
    return s.select(span > 0, inside, alone) if isinstance(span, Value) else inside


def _padded(s: ScalarBuilder, v: Value, low: float, high: _Length, extent: _Length, padding: str) -> Value:
    """Moves a coordinate as ``padding`` says."""
    if padding == "border":
        return s.minimum(s.maximum(v, 0.0), extent - 1.0)
    return _reflected(s, v, low, high) if padding == "reflection" else v


@record(frozen=True)
class _Taps:
    """The ``count`` integer positions and weights around a coordinate."""

    count: int
    around: Callable[[ScalarBuilder, Value], list[tuple[Value, Number]]]


def _taps(c: OpContext, mode: str) -> _Taps:
    """Returns the taps of an interpolation."""

    def nearest(s: ScalarBuilder, v: Value) -> list[tuple[Value, Number]]:
        return [(s.math("round_even", v), 1.0)]

    def linear(s: ScalarBuilder, v: Value) -> list[tuple[Value, Number]]:
        base = s.math("floor", v)
        rest = v - base
        return [(base, 1.0 - rest), (base + 1.0, rest)]

    def cubic(s: ScalarBuilder, v: Value) -> list[tuple[Value, Number]]:
        base = s.math("floor", v)
        t, a = v - base, -0.75

        def inner(d: Value) -> Value:
            return ((a + 2) * d - (a + 3)) * d * d + 1.0

        def outer(d: Value) -> Value:
            return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

        weights = [outer(t + 1.0), inner(t), inner(1.0 - t), outer(2.0 - t)]
        return [(base + float(i - 1), w) for i, w in enumerate(weights)]

    two, four = _Taps(2, linear), _Taps(4, cubic)
    forms = {"nearest": _Taps(1, nearest), "linear": two, "bilinear": two, "cubic": four, "bicubic": four}
    if mode not in forms:
        raise c.unsupported(f"mode {mode!r}; known: {', '.join(forms)}")
    return forms[mode]
