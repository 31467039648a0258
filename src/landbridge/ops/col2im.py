"""Col2Im: the sum of blocks at their positions in an image; each pixel gathers from the blocks that cover it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from landbridge.errors import ShapeError
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import SUMS, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import at_least
from landbridge.ops.rules import rules
from landbridge.ops.slicing import index_within, part
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, ceildiv, largest, same


@record(frozen=True)
class _Axis:
    """One axis of an image of ``extent`` pixels, ``low`` of padding before them, and of blocks of ``kernel`` pixels, of
    which there are ``count``, one every ``stride`` pixels. Steps of ``dilation`` lie between pixels of a block; they
    are 1 where the stride is not.

    Pixel ``stride * q + phase`` of the padded image is element ``phase + stride * j`` of block ``q - j``.
    """

    extent: Extent
    low: int
    kernel: int
    count: Extent
    stride: int
    dilation: int

    @property
    def first(self) -> int:
        """Returns the first q: whole strides of padding are no part of the result."""
        return self.low // self.stride

    @property
    def strides(self) -> Extent:
        """Returns the number of q."""
        return ceildiv(self.extent + self.low, self.stride) - self.first

    @property
    def taps(self) -> int:
        """Returns the number of j."""
        return -(-self.kernel // self.stride)

    @property
    def before(self) -> int:
        """Returns the number of blocks, all 0, that pixels read before the first one."""
        return max((self.taps - 1) * self.dilation - self.first, 0)

    @property
    def after(self) -> Extent:
        """Returns the number of blocks that pixels read after the last one."""
        return largest(self.first + self.strides - self.count, 0)


@rules(
    "input: N J L",
    "image_shape: r",
    "block_shape: r",
    attributes={
        "image_shape": at_least(1),
        "block_shape": at_least(1),
        "dilations": at_least(1, count="r"),
        "pads": at_least(0, count="2 * r"),
        "strides": at_least(1, count="r"),
    },
    where=("r > 0",),
)
@kernel("", "Col2Im")
@accuracy(SUMS)
def col2im(c: OpContext, x: Operand, image: Operand, block: Operand) -> Operand:
    """Computes the sum of blocks, a column of ``x`` each, at their positions in the image."""
    (batch, elements, columns), spatial = c.shape(x), c.ints("image_shape", image) or []
    kernel, rank = c.ints("block_shape", block) or [], len(spatial)
    if any(isinstance(k, Size) for k in kernel):
        raise c.unsupported(f"blocks of {', '.join(map(str, kernel))} pixels; give their axes numbers")
    stride, dilation = c.ints("strides") or [1] * rank, c.ints("dilations") or [1] * rank
    pads = c.ints("pads") or [0] * (2 * rank)
    padded = [e + pads[i] + pads[rank + i] for i, e in enumerate(spatial)]
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    counts = [(p - span) // s + 1 for p, span, s in zip(padded, spans, stride, strict=True)]
    channels = elements // prod(kernel)
    if not same(elements, channels * prod(kernel)) or not same(element_count(counts), columns):
        raise ShapeError(
            f"{c.g.node}: {columns} columns of {elements} elements; blocks of {kernel} of an image of {padded} pixels, "
            f"padding among them, are {counts} of multiples of {prod(kernel)}"
        )
    blocks = c.reshape(x, (batch, channels, *kernel, *counts))
    for i in range(rank):
        if stride[i] > 1 and dilation[i] > 1:
            blocks = _spread(c, blocks, 2 + i, dilation[i])
            kernel[i], dilation[i] = spans[i], 1
    axes = [_Axis(*each) for each in zip(spatial, pads, kernel, counts, stride, dilation, strict=False)]
    summed = _summed(c, blocks, axes)
    cut = [axis.low - axis.first * axis.stride for axis in axes]
    return part(c, summed, [0, 0, *cut], [1] * (2 + rank), [batch, channels, *spatial])


def _spread(c: OpContext, x: Operand, axis: int, by: int) -> Operand:
    """Inserts zeros between the elements of ``x`` along ``axis``, so that their distance is ``by``."""
    shape, dtype = list(c.shape(x)), c.dtype(x)
    extent = shape[axis]
    shape[axis] = (extent - 1) * by + 1

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        where, location = list(at), s.cast(at[axis], "int64")
        where[axis] = index_within(s, s.binary("div", location, by), extent)
        return s.select(s.binary("rem", location, by).eq(0), buffers[0].load(s, where), 0)

    return c.compute("spread", [x], shape, body, dtype)


def _summed(c: OpContext, x: Operand, axes: Sequence[_Axis]) -> Operand:
    """Computes the sum for each pixel, from the first stride of each axis with pixels of the result on."""
    (batch, channels), rank = c.shape(x)[:2], len(axes)
    shape = [batch, channels, *(e for axis in axes for e in (axis.strides, axis.stride))]

    def build(p: PrimBuilder) -> None:
        low = [0] * (2 + rank) + [axis.before for axis in axes]
        high: list[Extent] = [0, 0, *(axis.taps * axis.stride - axis.kernel for axis in axes)]
        high += [axis.after for axis in axes]
        source = p.pad(p.inputs[0], low, high, 0) if any(low) or any(high) else p.inputs[0]

        def read(n: Any, channel: Any, *d: Any) -> list[Any]:
            strides, phases, taps = d[0 : 2 * rank : 2], d[1 : 2 * rank : 2], d[2 * rank :]
            within = [r + j * a.stride for r, j, a in zip(phases, taps, axes, strict=True)]
            blocks = [q - j * a.dilation + (a.first + a.before) for q, j, a in zip(strides, taps, axes, strict=True)]
            return [n, channel, *within, *blocks]

        p.generic(
            "p" * len(shape) + "r" * rank,
            [*shape, *(axis.taps for axis in axes)],
            [(source, read)],
            [(p.outputs[0], lambda *d: d[: len(shape)])],
            lambda s, total, v: s.binary("or" if total.dtype == "bool" else "add", total, v),
            init=0,
        )

    created = c.g.call("col2im", [c.value(x)], [(shape, c.dtype(x))], build)[0]
    return c.reshape(created, (batch, channels, *(axis.strides * axis.stride for axis in axes)))
