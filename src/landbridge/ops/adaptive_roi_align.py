"""RoiAlign in which the size of a region decides the number of samples of a cell: one per pixel along each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from landbridge.ir.loop_builder import LoopBuilder
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import shape_of
from landbridge.ops.context import BodyBuffer
from landbridge.ops.slicing import index_within
from landbridge.records import record
from landbridge.sizes.size import Extent

#: The largest number of samples; the coordinates of more could not be distinguished in float32.
_MOST = float(1 << 62)


@record(frozen=True)
class RegionAxis:
    """An axis of ``extent`` pixels. Regions begin in ``column`` of the regions and are divided into ``cells``.

    Coordinates are multiplied by ``scale``; with ``half_pixel``, they are relative to the centres of pixels. ``dtype``
    is that of the computation.
    """

    extent: Extent
    column: int
    cells: int
    scale: float
    half_pixel: bool
    dtype: str

    def region(self, s: ScalarBuilder, begin: Value, end: Value) -> tuple[Value, Value]:
        """Returns the start of a region, in pixels, and its number of pixels."""
        begin, end = (s.cast(v, self.dtype) * self.scale - (0.5 if self.half_pixel else 0.0) for v in (begin, end))
        return begin, end - begin if self.half_pixel else s.maximum(end - begin, 1.0)

    def pixels(self, s: ScalarBuilder, location: Value) -> tuple[Value, Value, Value]:
        """Returns the pixel before ``location``, a whole float, and the weights of it and of the next one; both are 0
        outside of the image.
        """
        extent = s.const(self.extent, self.dtype)
        inside = (location >= -1.0) & (location <= extent)
        location = s.maximum(location, 0.0)
        low = s.minimum(s.math("floor", location), extent - 1.0)
        after = s.select(low >= extent - 1.0, 0.0, location - low)
        return s.select(inside, low, 0.0), s.select(inside, 1.0 - after, 0.0), s.select(inside, after, 0.0)

    def corners(self, s: ScalarBuilder, location: Value) -> list[tuple[Value, Value]]:
        """Returns the indices of the two pixels around ``location``, with their weights."""
        low, before, after = self.pixels(s, location)
        first = s.cast(low, "int64")
        return [(index_within(s, first, self.extent), before), (index_within(s, first + 1, self.extent), after)]


def write_adaptive(p: PrimBuilder, axes: Sequence[RegionAxis], largest: bool) -> None:
    """Writes the cells [R, rows, columns, C] of regions [R, 4] of images [N, H, W, C]; ``largest``: the maximum, not
    the mean.

    The number of samples of a cell is its extent rounded up. Only samples in the image are visited, so that the work is
    limited by the image for all regions. A region without extent, or with one that is not finite, has cells of 0, as in
    onnxruntime.
    """
    (batch, _, _, channels), dtype = shape_of(p.inputs[0].type), axes[0].dtype
    totals = p.temp([channels], dtype)
    count = shape_of(p.outputs[0].type)[0]

    def region(s: LoopBuilder, number: Value, *memrefs: SSAValue) -> None:
        image, corners, batch_indices, result, totals = (BodyBuffer(each, p.dtype(each)) for each in memrefs)
        of = index_within(s, batch_indices.load(s, [number]), batch)
        samples = [_Samples.of(s.uncontracted(), axis, corners, number) for axis in axes]
        some = samples[0].some & samples[1].some
        first = s.select(some, s.const(float("-inf"), dtype), 0.0) if largest else s.const(0.0, dtype)
        share = s.select(some, 1.0 / (samples[0].number * samples[1].number), 0.0)

        def cell(row: Value, column: Value) -> None:
            begins = [each.start(s, at) for each, at in zip(samples, (row, column), strict=True)]
            ranges = [each.visited(s, begin, some) for each, begin in zip(samples, begins, strict=True)]
            start = first
            if largest:  # samples that are not visited are 0
                whole = [
                    s.cast(s.cast(high - low, "int64"), dtype) >= e.number
                    for e, (low, high) in zip(samples, ranges, strict=True)
                ]
                start = s.select(whole[0] & whole[1], first, s.maximum(first, 0.0))
            _each(s, channels, lambda c: totals.store(s, [c], start))

            def sample(i: Value, j: Value) -> None:
                ends = [
                    axis.corners(s, each.location(s, begin, at))
                    for axis, each, begin, at in zip(axes, samples, begins, (i, j), strict=True)
                ]

                def add(c: Value) -> None:
                    found = [
                        s.cast(image.load(s, [of, y, x, c]), dtype) * (of_y * of_x)
                        for y, of_y in ends[0]
                        for x, of_x in ends[1]
                    ]
                    total = totals.load(s, [c])
                    for each in found:
                        total = s.maximum(total, each) if largest else total + each
                    totals.store(s, [c], total)

                _each(s, channels, add)

            def along_row(i: Value) -> Sequence[Value]:
                def at(j: Value) -> Sequence[Value]:
                    sample(i, j)
                    return ()

                s.loop(*ranges[1], [], at)
                return ()

            s.loop(*ranges[0], [], along_row)

            def finish(c: Value) -> None:
                total = totals.load(s, [c])
                result.store(s, [number, row, column, c], total if largest else total * share)

            _each(s, channels, finish)

        _each(s, axes[0].cells, lambda row: _each(s, axes[1].cells, lambda column: cell(row, column)))

    p.forall(count, [*p.inputs, *p.outputs, totals], region)


def _each(s: LoopBuilder, count: Extent, body: Callable[[Value], None]) -> None:
    """Writes ``body`` for each index of ``count``."""

    def once(i: Value) -> Sequence[Value]:
        body(i)
        return ()

    s.loop(0, s.const(count, "index"), [], once)


@record(frozen=True)
class _Samples:
    """The samples along an axis of a region: the ``begin`` of the region, the extent of a ``cell``, the ``number`` of
    its samples (a float), their distance ``step``, and whether there are ``some``.
    """

    axis: RegionAxis
    begin: Value
    cell: Value
    number: Value
    step: Value
    some: Value

    @staticmethod
    def of(s: ScalarBuilder, axis: RegionAxis, corners: BodyBuffer, region: Value) -> _Samples:
        """Returns the samples of ``region``, counted as onnxruntime does, in the same order of operations."""
        begin, extent = axis.region(s, *(corners.load(s, [region, axis.column + more]) for more in (0, 2)))
        cell = extent / float(axis.cells)
        number = s.math("ceil", cell)
        some = (number > 0.0) & (number < _MOST)
        number = s.select(some, number, 1.0)
        return _Samples(axis, begin, cell, number, cell / number, some)

    def start(self, s: ScalarBuilder, cell: Value) -> Value:
        """Returns where ``cell`` begins."""
        return self.begin + s.cast(s.cast(cell, "int64"), self.axis.dtype) * self.cell

    def location(self, s: ScalarBuilder, start: Value, number: Value) -> Value:
        """Returns the location of sample ``number`` of a cell that begins at ``start``."""
        return start + (s.cast(s.cast(number, "int64"), self.axis.dtype) + 0.5) * self.step

    def visited(self, s: ScalarBuilder, start: Value, some: Value) -> tuple[Value, Value]:
        """Returns the range of samples that may be in the image, with one more on either side because the division
        rounds.

        The distance of samples is at least half a pixel if a cell has more than one.
        """
        most = s.select(some, self.number, 0.0)
        low, high = ((edge - start) / self.step for edge in (-1.0, s.const(self.axis.extent, self.axis.dtype)))
        ends = (s.math("floor", low) - 2.0, s.math("ceil", high) + 2.0)
        first, last = (s.minimum(s.maximum(end, 0.0), most) for end in ends)
        return s.cast(s.cast(first, "int64"), "index"), s.cast(s.cast(last, "int64"), "index")
