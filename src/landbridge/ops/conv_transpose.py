"""Handler of ConvTranspose, and its two lowerings."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from landbridge.errors import ShapeError
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import kernel
from landbridge.ops.accuracy import SUMS, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.convolution import CONVOLUTION, add_bias, convolve
from landbridge.ops.legal import at_least
from landbridge.ops.phase_convolution import convolve_phases
from landbridge.ops.phases import phases
from landbridge.ops.rules import rules
from landbridge.ops.slicing import part
from landbridge.ops.windows import Windows, check_kernel
from landbridge.sizes.size import Size


@rules(
    "X: N C *D",
    "W: C P *k",
    "B?: _",
    attributes={
        **CONVOLUTION,
        "output_padding": at_least(0, count="len(D)"),
        "output_shape": at_least(1, count="len(D)"),
    },
    where=(
        "len(D) > 0 and len(D) == len(k)",
        "C % group == 0",
        "all(e > 0 for e in (*k, *D))",
        "tuple(kernel_shape) == k",
        "B == (P * group,)",
    ),
)
@kernel("", "ConvTranspose")
@accuracy(SUMS)
def conv_transpose(c: OpContext, x: Operand, w: Operand, bias: Operand | None = None) -> Operand:
    """Computes a transposed convolution by phases, each with its share of the taps; where that takes fewer products
    (strides with dilations), by a convolution over the input with zeros between elements.
    """
    spatial, kernel = c.shape(x)[2:], list(c.shape(w)[2:])
    check_kernel(c, kernel)
    group, rank = c.attribute("group", 1), len(spatial)
    stride = c.ints("strides") or [1] * rank
    dilation = c.ints("dilations") or [1] * rank
    low, output = _extents(c, spatial, kernel, stride, dilation)
    if any(extent < 1 for extent in output):
        raise ShapeError(
            f"{c.g.node}: ConvTranspose of {spatial} has an output of {output}; fewer pads, or a larger output_shape, "
            "are legal"
        )
    axes = [phases(*axis) for axis in zip(stride, low, kernel, dilation, strict=True)]
    flipped = _flipped(c, w, group)
    if max(stride) > 1 and prod(a.taps for a in axes) <= prod(kernel):
        return add_bias(c, convolve_phases(c, x, flipped, axes, output, group), bias, c.dtype(x))
    stuffed = _stuff(c, x, stride)
    before = [(k - 1) * d - a for k, d, a in zip(kernel, dilation, low, strict=True)]
    extents = c.shape(stuffed)[2:]
    after = [
        o - 1 + (k - 1) * d + 1 - e - b for o, k, d, e, b in zip(output, kernel, dilation, extents, before, strict=True)
    ]
    stuffed = _cut(c, stuffed, before, after)
    before, after = [max(v, 0) for v in before], [max(v, 0) for v in after]
    ones = (1,) * rank
    windows = Windows(tuple(kernel), ones, tuple(dilation), tuple(before), tuple(after), tuple(after), tuple(output))
    return add_bias(c, convolve(c, stuffed, flipped, windows, group), bias, c.dtype(x))


def _extents(
    c: OpContext, spatial: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Returns (cut off before, output extent) of each axis."""
    rank = len(spatial)
    extra = c.ints("output_padding") or [0] * rank
    pads = c.ints("pads") or [0] * (2 * rank)
    wanted = c.ints("output_shape")
    auto = c.attribute("auto_pad", "NOTSET") or "NOTSET"
    low, output = [], []
    for i, extent in enumerate(spatial):
        full = (extent - 1) * stride[i] + extra[i] + (kernel[i] - 1) * dilation[i] + 1
        if wanted or auto.startswith("SAME"):
            target = wanted[-rank:][i] if wanted else extent * stride[i]
            total = max(full - target, 0)
            if isinstance(total, Size):
                raise c.unsupported(
                    f"an output_shape of {target} of {extent} elements, whose pads are known when the input comes; "
                    "give these a number, or pads in place of output_shape"
                )
            low.append(total // 2 if auto == "SAME_UPPER" else total - total // 2)
            output.append(target)
        else:
            low.append(pads[i])
            output.append(full - pads[i] - pads[rank + i])
    return low, output


def _stuff(c: OpContext, x: Operand, stride: Sequence[int]) -> Operand:
    """Inserts ``stride - 1`` zeros between the elements of each spatial axis."""
    if all(s == 1 for s in stride):
        return x
    n, channels, *spatial = c.shape(x)
    result = (n, channels, *((e - 1) * s + 1 for e, s in zip(spatial, stride, strict=True)))

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        where, hit = list(at[:2]), s.const(True, "bool")
        for i, by in zip(at[2:], stride, strict=True):
            where.append(s.binary("div", i, by))
            if by > 1:
                hit = hit & s.binary("rem", i, by).eq(0)
        return s.select(hit, buffers[0].load(s, where), 0)

    return c.compute("stuff", [x], result, body, c.dtype(x))


def _flipped(c: OpContext, w: Operand, group: int) -> Operand:
    """Returns weights [C, OC/g, taps] as those of a convolution, [OC, C/g, taps reversed]."""
    channels, per_group, *kernel = c.shape(w)
    inner, rank = channels // group, len(kernel)
    result = (group * per_group, inner, *kernel)
    if isinstance(w, np.ndarray):
        grouped = w.reshape(group, inner, per_group, *kernel).swapaxes(1, 2)
        mirrored = np.flip(grouped, tuple(range(3, 3 + rank)))
        return np.ascontiguousarray(mirrored).reshape(result)
    split = (group, per_group, inner, *kernel)
    grouped_value = c.g.reshape(w, (group, inner, per_group, *kernel))
    mirrored_value = c.gather(
        "flip",
        grouped_value,
        split,
        lambda g, o, i, *t: [g, i, o, *(v * -1 + (k - 1) for v, k in zip(t, kernel, strict=True))],
    )
    return c.reshape(mirrored_value, result)


def _cut(c: OpContext, x: Operand, before: Sequence[int], after: Sequence[int]) -> Operand:
    """Removes the elements that negative padding cuts off."""
    shape = c.shape(x)
    start = [0, 0, *(max(-b, 0) for b in before)]
    end = [0, 0, *(max(-a, 0) for a in after)]
    wanted = [e - s - t for e, s, t in zip(shape, start, end, strict=True)]
    return part(c, x, start, [1] * len(shape), wanted)
