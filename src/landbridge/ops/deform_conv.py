"""DeformConv: a convolution whose taps are at computed positions between elements.

Which elements lie around each tap, and their weights, is computed once for all channels. Channels come last then, so
that vectors of them are loaded from one place: each tap of a pixel becomes a row of sums of four such vectors, and the
convolution a matrix product of these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from typing import Any

from xdsl.ir import SSAValue

from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.convolution import add_bias
from landbridge.ops.legal import at_least
from landbridge.ops.matrix_product import batched_product, matrix_product
from landbridge.ops.rules import rules
from landbridge.ops.slicing import index_within
from landbridge.records import record
from landbridge.sizes.size import Extent

#: The elements around a tap: how many rows and columns behind the first of them.
_AROUND = ((0, 0), (0, 1), (1, 0), (1, 1))


@record(frozen=True)
class _Taps:
    """The taps of one node: a ``kernel`` of rows and columns over images of ``spatial`` rows and columns, by rows and
    columns of ``output``; ``blocks`` of channels, each of one group and of one offset group."""

    batch: Extent
    spatial: tuple[Extent, ...]
    output: tuple[Extent, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    low: tuple[int, ...]
    groups: int
    offset_groups: int
    channels: int
    dtype: str

    @property
    def blocks(self) -> int:
        return lcm(self.groups, self.offset_groups)


@rules(
    "X: N C H W",
    "W: M K *k",
    "offset: N _ P Q",
    "B?: M",
    "mask?: N _ P Q",
    attributes={
        "group": at_least(1, default=1),
        "offset_group": at_least(1, default=1),
        "kernel_shape": at_least(1, count="2"),
        "strides": at_least(1, count="2"),
        "dilations": at_least(1, count="2"),
        "pads": at_least(0, count="4"),
    },
    where=(
        "len(k) == 2",
        "C == K * group",
        "M % group == 0",
        "C % offset_group == 0",
        "min(k) > 0",
        "tuple(kernel_shape) == k",
        "offset[1] == 2 * offset_group * k[0] * k[1]",
        "mask[1] == offset_group * k[0] * k[1]",
    ),
)
@kernel("", "DeformConv")
@accuracy(ulp=8, sums=True, note="the condition is the extent of an axis times the magnitudes of the taps")
def deform_conv(
    c: OpContext, x: Operand, w: Operand, offset: Operand, bias: Operand | None = None, mask: Operand | None = None
) -> Operand:
    """Computes a convolution of images whose taps are moved by ``offset`` and weighted by ``mask``."""
    (batch, channels, *spatial), (outputs, inner, *kernel) = c.shape(x), c.shape(w)
    if not isinstance(channels, int):
        raise c.unsupported(f"images of {channels} channels; give them a number")
    output, total = c.shape(offset)[2:], accumulator(c.dtype(x))
    node = _Taps(
        batch,
        tuple(spatial),
        tuple(output),
        tuple(kernel),
        tuple(c.ints("strides") or (1, 1)),
        tuple(c.ints("dilations") or (1, 1)),
        tuple((c.ints("pads") or (0, 0))[:2]),
        c.attribute("group", 1),
        c.attribute("offset_group", 1),
        channels,
        total,
    )
    rows, terms = batch * element_count(output), element_count(kernel) * inner
    taken = c.reshape(_taken(c, node, x, offset, mask), (node.groups, rows, terms))
    weights = c.reshape(c.transpose(w, [0, 2, 3, 1]), (node.groups, outputs // node.groups, terms))
    if node.groups == 1:
        created = matrix_product(c, c.reshape(taken, (rows, terms)), c.reshape(weights, (outputs, terms)), trans_b=True)
    else:
        created = batched_product(c, taken, c.transpose(weights, [0, 2, 1]))
        created = c.transpose(created, [1, 0, 2])
    created = c.transpose(c.reshape(created, (batch, *output, outputs)), [0, 3, 1, 2])
    return add_bias(c, created, bias, c.dtype(x))


def _taken(c: OpContext, node: _Taps, x: Operand, offset: Operand, mask: Operand | None) -> SSAValue:
    """Returns the sample of each tap and channel: (groups, N, P, Q, kernel rows, kernel columns, channels of a
    group).
    """
    (batch, *_), pixels = c.shape(x), element_count(node.spatial)
    last = c.reshape(c.transpose(x, [0, 2, 3, 1]), (batch, pixels, node.channels))
    taps = (batch, node.offset_groups, *node.kernel)
    operands = [last, c.reshape(offset, (*taps, 2, *node.output))]
    if mask is not None:
        operands.append(c.reshape(mask, (*taps, *node.output)))
    shape = (node.groups, batch, *node.output, *node.kernel, node.channels // node.groups)
    return c.g.call(
        "deform_taps",
        [c.value(v) for v in operands],
        [(shape, c.dtype(x))],
        lambda p: _write_taps(p, node),
    )[0]


def _write_taps(p: PrimBuilder, node: _Taps) -> None:
    """Writes, for each row of pixels, the positions and weights around its taps, then every channel."""
    (rows, columns), dtype, blocks = node.output, node.dtype, node.blocks
    shape = [node.batch, rows, node.offset_groups, *node.kernel, columns]
    places, weights = ([p.temp(shape, kind) for _ in _AROUND] for kind in ("int64", dtype))

    def of_offset(n: Any, row: Any, group: Any, i: Any, j: Any, column: Any) -> list[Any]:
        return [n, group, i, j, row, column]

    def moved(axis: int) -> Access:
        def at(*d: Any) -> list[Any]:
            *tap, row, column = of_offset(*d)
            return [*tap, axis, row, column]

        return p.inputs[1], at

    def around(s: ScalarBuilder, y: Value, x: Value, *mask: Value) -> list[Value]:
        exact, ends = s.uncontracted(), []
        for axis, (offset, loop, tap) in enumerate(((y, 1, 3), (x, 5, 4))):
            first = s.cast(s.index(loop), "int64") * node.stride[axis] - node.low[axis]
            first = first + s.cast(s.index(tap), "int64") * node.dilation[axis]
            ends.append(_around(exact, exact.cast(first, dtype) + exact.cast(offset, dtype), node.spatial[axis]))
        created = [(a[0] * node.spatial[1] + b[0], a[1] * b[1]) for a in ends[0] for b in ends[1]]
        factors = [weight * s.cast(m, dtype) for _, weight in created for m in mask] or [
            weight for _, weight in created
        ]
        return [*(location for location, _ in created), *factors]

    reads = [moved(0), moved(1), *((each, of_offset) for each in p.inputs[2:])]
    p.generic("p" * len(shape), shape, reads, [(b, lambda *d: d) for b in (*places, *weights)], around)
    source, held = BodyBuffer(p.inputs[0], p.dtype(p.inputs[0])), node.channels // blocks
    in_group, in_offset_group = blocks // node.groups, blocks // node.offset_groups

    def take(s: ScalarBuilder, *read: Value) -> Value:
        channel = s.index(2) * held + s.index(6)
        total: Value | None = None
        for location, weight in zip(read[:4], read[4:], strict=True):
            at = index_within(s, location, element_count(node.spatial))
            term = s.cast(source.load(s, [s.index(0), at, channel]), dtype) * weight
            total = term if total is None else total + term
        assert total is not None
        return s.cast(total, p.dtype(p.outputs[0]))

    def of_tap(n: Any, row: Any, block: Any, i: Any, j: Any, column: Any, channel: Any) -> list[Any]:
        return [n, row, block // in_offset_group if in_offset_group > 1 else block, i, j, column]

    def result(n: Any, row: Any, block: Any, i: Any, j: Any, column: Any, channel: Any) -> list[Any]:
        if in_group == 1:
            return [block, n, row, column, i, j, channel]
        if node.groups == 1:
            return [0, n, row, column, i, j, block * held + channel]
        return [block // in_group, n, row, column, i, j, block % in_group * held + channel]

    loops: Sequence[Extent] = [node.batch, rows, blocks, *node.kernel, columns, held]
    p.generic("p" * 7, loops, [(b, of_tap) for b in (*places, *weights)], [(p.outputs[0], result)], take)


def _around(s: ScalarBuilder, at: Value, extent: Extent) -> list[tuple[Value, Value]]:
    """Returns the two elements around ``at`` of an axis of ``extent``, and their weights, which are 0 outside."""
    first, found = s.math("floor", at), []
    last = s.const(extent, at.dtype) - 1.0
    for location, weight in ((first, first + 1.0 - at), (first + 1.0, at - first)):
        inside = (location >= 0.0) & (location <= last)
        held = s.select(inside, location, 0.0)
        found.append((s.cast(held, "int64"), s.select(inside, weight, 0.0)))
    return found
