"""MaxRoiPool: regions of images, each as a grid of cells that are the maxima of their pixels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.ir.loop_builder import LoopBuilder
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import at_least, holds
from landbridge.ops.rules import rules
from landbridge.sizes.size import Extent

#: The operands that say where cells are are no farther away than this, so that they are integers.
_FARTHEST = float(1 << 30)


@rules(
    "X: N C H W",
    "rois: R 5",
    attributes={
        "pooled_shape": at_least(1, below=1 << 31, count="2"),
        "spatial_scale": holds("it - it == 0", "finite"),
    },
    where=("min(N, H, W) > 0 or R == 0",),
)
@kernel("", "MaxRoiPool")
@accuracy(EXACT)
def max_roi_pool(c: OpContext, x: Operand, rois: Operand) -> Operand:
    """Cells of the regions ``rois`` [R, 5] (image, x1, y1, x2, y2) of the images ``x`` [N, C, H, W]: [R, C, rows,
    columns].

    Corners are rounded to pixels, which are both part of the region; cells overlap where they share pixels, and one
    without any is 0. An image index out of range means the nearest image.
    """
    (images, channels, *spatial), count, dtype = c.shape(x), c.shape(rois)[0], c.dtype(x)
    infinity = np.array(np.inf, numpy_dtype(dtype))
    cells, scale = c.attribute("pooled_shape"), c.attribute("spatial_scale", 1.0)

    def build(p: PrimBuilder) -> None:
        def of_channel(s: LoopBuilder, number: Value, *memrefs: SSAValue) -> None:
            x, rois, found = (BodyBuffer(each, p.dtype(each)) for each in memrefs)
            region = s.inside(s.binary("div", number, channels), count)
            channel = s.inside(s.binary("rem", number, channels), channels)
            corners = [s.cast(rois.load(s, [region, i]), "float32") for i in range(5)]
            image = s.inside(s.maximum(_whole(s, corners[0]), 0), images)
            rows, columns = (
                _Axis(s, extent, count, [_whole(s, _rounded(s, corners[i] * scale)) for i in (first, first + 2)])
                for extent, count, first in zip(spatial, cells, (2, 1), strict=True)
            )
            lowest = s.const(float(np.nextafter(-infinity, np.zeros_like(infinity))), dtype)

            def row_of_cells(row: Value) -> Sequence[Value]:
                top, bottom = rows.pixels(row)

                def cell(column: Value) -> Sequence[Value]:
                    left, right = columns.pixels(column)

                    def larger(most: Value, at: Sequence[Value]) -> Value:
                        return s.maximum(most, x.load(s, [image, channel, *at]))

                    def along_row(y: Value, most: Value) -> Sequence[Value]:
                        return s.loop(left, right, [most], lambda x, most: [larger(most, [y, x])])

                    (most,) = s.loop(top, bottom, [lowest], along_row)
                    has_pixels = (bottom > top) & (right > left)
                    found.store(s, [region, channel, row, column], s.select(has_pixels, most, 0.0))
                    return ()

                s.loop(0, cells[1], [], cell)
                return ()

            s.loop(0, cells[0], [], row_of_cells)

        p.forall(count * channels, [*p.inputs, *p.outputs], of_channel)

    operands = [c.value(x), c.value(rois)]
    return c.g.call("max_roi_pool", operands, [((count, channels, *cells), dtype)], build)[0]


class _Axis:
    """Writes code that finds the pixels of ``count`` cells along an axis of ``extent`` pixels, of a region whose first
    and last one are ``ends``."""

    def __init__(self, s: LoopBuilder, extent: Extent, count: int, ends: Sequence[Value]) -> None:
        self._s, self._extent, self._first = s, extent, ends[0]
        exact = s.uncontracted()
        pixels = s.cast(s.maximum(ends[1] - ends[0] + 1, 1), "float32")
        self._of_cell = exact.wrap(pixels.ssa, "float32") / float(count)

    def pixels(self, cell: Value) -> tuple[Value, Value]:
        """Returns the first pixel of a cell, and the one behind the last."""
        s = self._s
        number = s.cast(cell, "int64")
        begin, end = (s.cast(n, "float32") * self._of_cell for n in (number, number + 1))
        return self._inside(s.math("floor", begin)), self._inside(s.math("ceil", end))

    def _inside(self, pixel: Value) -> Value:
        s = self._s
        last = s.const(self._extent, "int64")
        return s.cast(s.minimum(s.maximum(_whole(s, pixel) + self._first, 0), last), "index")


def _rounded(s: ScalarBuilder, v: Value) -> Value:
    """Rounds to the nearest integer, halves away from 0."""
    rounded = s.math("trunc", v)
    left = v - rounded
    return (
        rounded + s.select(left >= 0.5, s.const(1.0, v.dtype), 0.0) - s.select(left <= -0.5, s.const(1.0, v.dtype), 0.0)
    )


def _whole(s: ScalarBuilder, v: Value) -> Value:
    """Converts a float that is an integer to int64, clamped where it is large; NaN gives some number."""
    return s.cast(s.minimum(s.maximum(v, -_FARTHEST), _FARTHEST), "int64")
