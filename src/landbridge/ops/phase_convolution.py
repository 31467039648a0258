"""Transposed convolutions as one dense convolution whose results are interleaved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from math import prod
from operator import add
from typing import Any

import numpy as np

from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import element_count
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.matrix_product import multiply_add
from landbridge.ops.phases import Phases
from landbridge.ops.slicing import index_within, part
from landbridge.sizes.size import Extent, ceildiv, largest, same


def convolve_phases(
    c: OpContext, x: Operand, flipped: Operand, axes: Sequence[Phases], output: Sequence[Extent], group: int
) -> Operand:
    """Computes the sums of a transposed convolution, [N, M, *output], in the accumulator of the dtype of ``x``.

    ``flipped`` are weights [M, C / group, *taps reversed], ``axes`` the phases of each spatial axis. One kernel writes
    all phases of a pixel next to each other; 1-D runs as 2-D of height 1. Phases of the last pixel that are outside of
    the output are computed and dropped.
    """
    if len(axes) == 1:
        (n, channels, length), (outputs, inner, kernel) = c.shape(x), c.shape(flipped)
        data, weights = c.reshape(x, (n, channels, 1, length)), c.reshape(flipped, (outputs, inner, 1, kernel))
        y = convolve_phases(c, data, weights, (_ONE, *axes), (1, *output), group)
        return c.reshape(y, (n, outputs, *output))
    (n, channels, *spatial), (outputs, inner) = c.shape(x), c.shape(flipped)[:2]
    pixels = [ceildiv(o, a.stride) for o, a in zip(output, axes, strict=True)]
    low = [max(-a.first, 0) for a in axes]
    high = [largest(q - 1 + a.reach - (e - 1), 0) for q, a, e in zip(pixels, axes, spatial, strict=True)]
    loops = _Loops(axes)
    depthwise = group > 1 and inner == 1 and outputs == channels
    groups = (n, outputs) if group == 1 or depthwise else (n, group, outputs // group)
    summed = () if depthwise else (inner,)
    # Beyond two axes no layout is blocked by channels, and vectors lie along pixels: of one phase they are neighbours.
    separate = outputs < FEW_CHANNELS or not isinstance(flipped, np.ndarray) or len(axes) > 2
    phase_extents, tap_extents = loops.extents
    count = len(phase_extents)

    def build(p: PrimBuilder) -> None:
        source = p.inputs[0]
        if any(same(pad, 0) is not True for pad in (*low, *high)):
            source = p.pad(source, (0, 0, *low), (0, 0, *high), 0)

        def split(d: Sequence[Any]) -> tuple[Any, Any, Any, Sequence[Any], Sequence[Any]]:
            """Returns (output channel, data channel, weight channel, pixel, phases and taps)."""
            lead, rest = d[1 : len(groups)], d[len(groups) :]
            pixel, phase, tail = loops.parts(rest, len(summed))
            whole = lead[0] if len(lead) == 1 else lead[0] * (outputs // group) + lead[1]
            ic = tail[0] if tail else 0
            read = whole if depthwise else ic if group == 1 else lead[0] * inner + ic
            return whole, read, ic, pixel, phase

        def data(*d: Any) -> list[Any]:
            _, read, _, pixel, at = split(d)
            return [d[0], read, *loops.read(pixel, at, low)]

        def weights(*d: Any) -> list[Any]:
            whole, _, ic, _, at = split(d)
            return [whole, ic, *at]

        def result(*d: Any) -> list[Any]:
            whole, _, _, pixel, at = split(d)
            return [d[0], whole, *((*at[:count], *pixel) if separate else loops.written(pixel, at))]

        extents = (*groups, *pixels, *phase_extents, *summed, *tap_extents)
        reduced = len(summed) + len(tap_extents)
        p.generic(
            "p" * (len(extents) - reduced) + "r" * reduced,
            extents,
            [(source, data), (p.inputs[1], weights)],
            [(p.outputs[0], result)],
            multiply_add,
            init=0,
        )

    whole = (n, outputs, *(q * a.stride for q, a in zip(pixels, axes, strict=True)))
    total = accumulator(c.dtype(x))
    shape = (n, outputs, *phase_extents, *pixels) if separate else whole
    created: Operand
    if _is_less_as_product(c, flipped, axes, pixels[-1], group):
        created = _by_product(c, x, flipped, axes, loops, pixels, group)
    else:
        values = [c.value(x), c.value(_laid_out(c, flipped, axes, loops))]
        created = c.g.call("conv_transpose", values, [(shape, total)], build)[0]
    if separate:
        created = _interleaved(c, created, axes, whole)
    return part(c, created, [0] * len(whole), [1] * len(whole), [n, outputs, *output])  # type: ignore[list-item]


def _is_less_as_product(c: OpContext, flipped: Operand, axes: Sequence[Phases], line: Extent, group: int) -> bool:
    """Returns whether it is less work to multiply every data element by every weight, as a matrix product, and sum by
    phase, than to convolve with vectors along a ``line`` of pixels of one phase.

    That is so for few channels, or where no layout is blocked by channels.
    """
    (outputs, inner, *kernel), phases = c.shape(flipped), prod(a.stride for a in axes)
    if prod(a.taps for a in axes) == 1 or phases > MOST_PHASES:
        return False
    if len(axes) < 3:
        return outputs < FEW_CHANNELS and group == 1 and inner >= LONG_SUM
    multiplied = phases * prod(a.taps for a in axes) / prod(kernel)
    width = c.g.expected(line)
    lanes = -(-width // _LANES) * _LANES / width
    return inner * (_SLOWER * multiplied * lanes - 1) > _RETAINED_PRODUCT


def _by_product(
    c: OpContext,
    x: Operand,
    flipped: Operand,
    axes: Sequence[Phases],
    loops: _Loops,
    pixels: Sequence[Extent],
    group: int,
) -> Operand:
    """Returns each phase of each pixel, [N, M, phases, *pixels], from a matrix product of all data elements with all
    their weights.

    Result channels and taps are the rows of the product; each phase then sums its results.
    """
    (n, _, *spatial), (outputs, inner, *kernel) = c.shape(x), c.shape(flipped)
    each = outputs // group
    rows, plane, total = each * prod(kernel), element_count(spatial), accumulator(c.dtype(x))
    split = c.reshape(flipped, (group, each, inner, *kernel))
    weights = c.transpose(split, [0, 2, 1, *range(3, 3 + len(kernel))])
    operands = [c.reshape(x, (n, group, inner, plane)), c.reshape(weights, (group, inner, rows))]

    def multiply(p: PrimBuilder) -> None:
        reads: list[Access] = [
            (p.inputs[0], lambda b, g, m, q, k: (b, g, k, q)),
            (p.inputs[1], lambda b, g, m, q, k: (g, k, m)),
        ]
        out: Access = (p.outputs[0], lambda b, g, m, q, k: (b, g, m, q))
        p.generic("ppppr", (n, group, rows, plane, inner), reads, [out], multiply_add, init=0)

    shape: Sequence[Extent] = (n, group, rows, plane)
    created = c.g.call("conv_transpose", [c.value(v) for v in operands], [(shape, total)], multiply)[0]
    products = c.g.reshape(created, (n, outputs, *kernel, *spatial))
    windows = [[_window(a, phase) for phase in range(a.stride)] for a in axes]
    offsets = [[offset for window in axis for _, offset in window] for axis in windows]
    low = [max(-min(axis_offsets), 0) for axis_offsets in offsets]
    high = [
        largest(q - 1 + max(axis_offsets) - (e - 1), 0)
        for q, axis_offsets, e in zip(pixels, offsets, spatial, strict=True)
    ]

    def add_up(p: PrimBuilder) -> None:
        lead = (0,) * (2 + len(kernel))
        source = p.pad(p.inputs[0], (*lead, *low), (*lead, *high), 0)
        for phase in product(*(range(a.stride) for a in axes)):
            corners = list(product(*(windows[i][r] for i, r in enumerate(phase))))
            location = loops.phase(phase)

            def read(corner: Sequence[tuple[int, int]]) -> Access:
                at = [low[i] + offset for i, (_, offset) in enumerate(corner)]
                taps = [tap for tap, _ in corner]
                return source, lambda *d: [d[0], d[1], *taps, *(q + a for q, a in zip(d[2:], at, strict=True))]

            def total_of(s: ScalarBuilder, *values: Value) -> Value:
                return reduce(add, values) if values else s.const(0, total)

            out: Access = (p.outputs[0], lambda *d, location=location: [d[0], d[1], *location, *d[2:]])
            extents = (n, outputs, *pixels)
            p.generic("p" * len(extents), extents, [read(corner) for corner in corners], [out], total_of)

    shape = (n, outputs, *loops.extents[0], *pixels)
    return c.g.call("conv_transpose_sum", [products], [(shape, total)], add_up)[0]


def _window(axis: Phases, phase: int) -> list[tuple[int, int]]:
    """Returns, for each tap in the sum of ``phase``, the reversed tap and the offset of the data element that it
    multiplies from the pixel.
    """
    places = [
        (axis.tap(phase, j), axis.first + phase // axis.inner * axis.shift + j * axis.step) for j in range(axis.taps)
    ]
    return [(axis.kernel - 1 - tap, offset) for tap, offset in places if tap is not None]


#: With fewer result channels, vectors lie along the pixels of one phase, and phases are interleaved afterwards.
FEW_CHANNELS = 8
#: The most phases that are summed by separate code, and the data channels from which products of few result channels
#: cost more than storing them.
MOST_PHASES, LONG_SUM = 32, 16
#: The number of multiplications that take as long as storing and adding one product, and how much longer each takes in
#: a convolution of unblocked pixels than in a matrix product, measured with vectors of the third number of lanes.
_RETAINED_PRODUCT, _SLOWER, _LANES = 128, 4, 16
_ONE = Phases(stride=1, low=0, kernel=1, dilation=1, outer=1, shift=0, first=0, step=1, taps=1)


class _Loops:
    """The loops over phases, except those of one iteration, and over taps of all axes."""

    def __init__(self, axes: Sequence[Phases]) -> None:
        self._axes = axes
        phase = [(i, part, e) for i, a in enumerate(axes) for part, e in (("outer", a.outer), ("inner", a.inner))]
        self._phase = [p for p in phase if p[2] > 1]
        self._tap = [(i, "tap", a.taps) for i, a in enumerate(axes)]

    @property
    def extents(self) -> tuple[list[int], list[int]]:
        """Returns the extents of phases, which are parallel, and of taps, which are summed."""
        return [p[2] for p in self._phase], [t[2] for t in self._tap]

    def phase(self, values: Sequence[int]) -> list[int]:
        """Returns the indices of the loops over phases for the phase with ``values``, one for each axis."""
        return [
            values[i] // self._axes[i].inner if part == "outer" else values[i] % self._axes[i].inner
            for i, part, _ in self._phase
        ]

    def parts(self, d: Sequence[Any], summed: int) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Returns (pixel, phases and taps, summed loops between them) of loops in the order of the kernel."""
        rank, phases = len(self._axes), len(self._phase)
        tail = d[rank + phases :]
        return d[:rank], [*d[rank : rank + phases], *tail[summed:]], tail[:summed]

    def read(self, pixel: Sequence[Any], at: Sequence[Any], low: Sequence[int]) -> list[Any]:
        """Returns the index of the padded data that ``pixel`` reads."""
        where = self._named(at)
        return [
            q + where.get((i, "outer"), 0) * a.shift + where.get((i, "tap"), 0) * a.step + (a.first + low[i])
            for i, (q, a) in enumerate(zip(pixel, self._axes, strict=True))
        ]

    def written(self, pixel: Sequence[Any], at: Sequence[Any]) -> list[Any]:
        """Returns the index of the result that ``pixel`` writes."""
        where = self._named(at)
        return [
            q * a.stride + where.get((i, "outer"), 0) * a.inner + where.get((i, "inner"), 0)
            for i, (q, a) in enumerate(zip(pixel, self._axes, strict=True))
        ]

    def _named(self, at: Sequence[Any]) -> dict[tuple[int, str], Any]:
        return {(i, part): d for (i, part, _), d in zip((*self._phase, *self._tap), at, strict=True)}


def _interleaved(c: OpContext, created: Operand, axes: Sequence[Phases], shape: Sequence[Extent]) -> Operand:
    """Returns ``created``, [N, M, phases, pixels], as [N, M, *spatial] of ``shape``: one transpose, then a reshape."""
    of_axis = [[e for e in (a.outer, a.inner) if e > 1] for a in axes]
    count = sum(map(len, of_axis))
    source = c.shape(created)
    order = [0, 1]
    for i, extents in enumerate(of_axis):
        first = 2 + sum(map(len, of_axis[:i]))
        order += [2 + count + i, *range(first, first + len(extents))]
    places = [order.index(axis) for axis in range(len(order))]
    shuffled = c.gather("shuffle", created, [source[axis] for axis in order], lambda *d: [d[at] for at in places])
    return c.reshape(shuffled, shape)


def _laid_out(c: OpContext, flipped: Operand, axes: Sequence[Phases], loops: _Loops) -> Operand:
    """Returns weights [M, C / group, phases, taps of a phase], zero for taps that a phase does not have."""
    outputs, inner, *kernel = c.shape(flipped)
    rank = len(kernel)
    phase_extents, tap_extents = loops.extents
    shape = (outputs, inner, *phase_extents, *tap_extents)
    tables = [_table(a) for a in axes]
    if isinstance(flipped, np.ndarray):
        filled = np.pad(flipped, [(0, 0), (0, 0), *((0, 1) for _ in kernel)])
        for i in reversed(range(rank)):
            filled = np.take(filled, tables[i], axis=2 + i)
        order = [2 + 2 * i for i in range(rank)] + [3 + 2 * i for i in range(rank)]
        return np.ascontiguousarray(filled.transpose(0, 1, *order)).reshape(shape)
    strides = [a.stride for a in axes]
    whole = (outputs, inner, *strides, *(a.taps for a in axes))

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        where, hit = list(at[:2]), s.const(True, "bool")
        for i, extent in enumerate(kernel):
            tap = buffers[1 + i].load(s, [at[2 + i], at[2 + rank + i]])
            hit = hit & (tap < extent)
            where.append(index_within(s, tap, extent))
        return s.select(hit, buffers[0].load(s, where), 0)

    laid = c.compute("phases", [flipped, *tables], whole, body, c.dtype(flipped))
    return c.reshape(laid, shape)


def _table(axis: Phases) -> np.ndarray[Any, Any]:
    """Returns, as int64 [stride, taps], the reversed tap that each phase applies to each element of its window.

    Where the phase has none there it is the number of taps of the kernel, the index of a zero that is appended.
    """
    taps = [[axis.tap(r, j) for j in range(axis.taps)] for r in range(axis.stride)]
    return np.array([[axis.kernel if t is None else axis.kernel - 1 - t for t in row] for row in taps], np.int64)
