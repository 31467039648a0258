"""Fourier transforms as contractions with a constant matrix."""

from __future__ import annotations

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.types import LARGEST_CONSTANT, check_size
from landbridge.ops.accuracy import SUMS, accuracy
from landbridge.ops.context import Array, OpContext, Operand
from landbridge.ops.legal import at_least, between
from landbridge.ops.registry import operator
from landbridge.ops.rules import rules
from landbridge.sizes.size import Size, product


def _matrix(points: int, bins: int, parts: int, inverse: bool, mirrored: int = 0) -> Array:
    """[out part, in part, bin, point]: real and imaginary parts of ``exp(-2 pi i k n / points)``.

    ``mirrored``: the input holds only that many bins of a spectrum whose others are their conjugates.
    """
    check_size((2, parts, bins, mirrored or points), "float64", LARGEST_CONSTANT)
    k, n = np.arange(bins)[:, None], np.arange(mirrored or points)[None, :]
    # within one turn: the rounding of a larger angle would be an error of as many more eps
    angle = 2 * np.pi * (k * n % points) / points * (-1 if not inverse else 1)
    cos, sin = np.cos(angle), np.sin(angle)
    table = np.array([[cos, -sin], [sin, cos]])[:, :parts]
    if mirrored:
        twice = np.where((n == 0) | ((points % 2 == 0) & (n == points // 2)), 1.0, 2.0)
        table = np.array([[cos * twice, -sin * twice]])[:, :parts]
    result: Array = table / points if inverse else table
    return result


@rules(
    "input: _ ... parts",
    "dft_length?: () | 1",
    "axis?: () | 1",
    attributes={"axis": between("-len(input)", "len(input) - 2", default=-2), "dft_length": at_least(1, below=1 << 31)},
    where=("parts in (1, 2)", "axis != -1", "input[axis] > 0"),
)
@operator("DFT", since=20)
@accuracy(SUMS)
def dft(c: OpContext, x: Operand, length: Operand | None = None, axis: Operand | None = None) -> Operand:
    """Along the input ``axis``, -2 by default."""
    return _dft(c, x, length, -2 if axis is None else int(c.constant(axis, "axis").reshape(-1)[0]))


@rules(
    "input: _ ... parts",
    "dft_length?: () | 1",
    attributes={"axis": between("-len(input)", "len(input) - 2", default=1), "dft_length": at_least(1, below=1 << 31)},
    where=("parts in (1, 2)", "axis != -1", "input[axis] > 0"),
)
@operator("DFT", since=17)
@accuracy(SUMS)
def dft_17(c: OpContext, x: Operand, length: Operand | None = None) -> Operand:
    """Along the attribute ``axis``, 1 by default."""
    return _dft(c, x, length, c.attribute("axis", 1))


def _dft(c: OpContext, x: Operand, length: Operand | None, along: int) -> Operand:
    shape, rank = c.shape(x), c.rank(x)
    axis, parts = c.axis(along, rank), shape[-1]
    inverse, onesided = bool(c.attribute("inverse", 0)), bool(c.attribute("onesided", 0))
    extent = shape[axis]
    mirrored = inverse and onesided
    points = (c.ints("dft_length", length) or [0])[0] if length is not None else 0
    points = points or (2 * (extent - 1) if mirrored else extent)
    if isinstance(points, Size):
        raise c.unsupported(f"a transform of {points} points, which is known when the input comes; give it a number")
    bins = points // 2 + 1 if onesided and not inverse else points
    used = min(extent, points // 2 + 1 if mirrored else points)
    table = _matrix(points, bins, parts, inverse, used if mirrored else 0)[..., :used]
    outs = table.shape[0]
    result = [bins if a == axis else e for a, e in enumerate(shape[:-1])] + [outs]

    if axis == rank - 2:
        return _product(c, x, table, bins, used)

    def build(p: PrimBuilder) -> None:
        p.generic(
            "p" * rank + "rr",
            (*result, parts, used),
            [
                (p.inputs[0], lambda *d: [d[rank + 1] if a == axis else d[a] for a in range(rank - 1)] + [d[rank]]),
                (p.inputs[1], lambda *d: [d[rank - 1], d[rank], d[axis], d[rank + 1]]),
            ],
            [(p.outputs[0], lambda *d: d[:rank])],
            lambda s, acc, a, b: acc + a * b,
            init=0,
        )

    constant = table.astype(numpy_dtype(accumulator(c.dtype(x))))
    return c.g.call("dft", [c.value(x), c.value(constant)], [(result, c.dtype(x))], build)[0]


def _product(c: OpContext, x: Operand, table: Array, bins: int, used: int) -> Operand:
    """Transforms along the last axis but one: rows of points times a matrix."""
    *rows, extent, parts = c.shape(x)
    outs = table.shape[0]
    count, terms, columns = product(rows), used * parts, bins * outs
    matrix = table.transpose(3, 1, 2, 0).reshape(terms, columns).astype(numpy_dtype(accumulator(c.dtype(x))))

    def build(p: PrimBuilder) -> None:
        p.generic(
            "ppr",
            (count, columns, terms),
            [(p.inputs[0], lambda r, k, n: [r, n]), (p.inputs[1], lambda r, k, n: [n, k])],
            [(p.outputs[0], lambda r, k, n: [r, k])],
            lambda s, acc, a, b: acc + a * b,
            init=0,
        )

    flat = c.reshape(x, (count, extent * parts))
    y = c.g.call("dft", [c.value(flat), c.value(matrix)], [((count, columns), c.dtype(x))], build)[0]
    return c.reshape(y, (*rows, bins, outs))


@rules(
    "signal: B L | B L 1 | B L 2",
    "frame_step: () | 1",
    "window?: P",
    "frame_length?: () | 1",
    attributes={"frame_step": at_least(1), "frame_length": at_least(1)},
    where=("P > 0", "P <= L", "frame_length <= L", "frame_length == P"),
)
@operator("STFT")
@accuracy(SUMS)
def stft(
    c: OpContext, x: Operand, step: Operand, window: Operand | None = None, length: Operand | None = None
) -> Operand:
    """Transforms of windows every ``step`` elements: [batch, frames, bins, 2]."""
    (batch, extent, *rest), hop = c.shape(x), int(c.constant(step, "frame_step").reshape(-1)[0])
    parts = rest[0] if rest else 1
    points = c.shape(window)[0] if window is not None else (c.ints("frame_length", length) or [0])[0]
    frames = (extent - points) // hop + 1
    bins = points // 2 + 1 if c.attribute("onesided", 1) else points
    # [point, in part, bin, out part]: a matrix whose rows lie as the signal does, and columns as the result
    table: Operand = (
        _matrix(points, bins, parts, False).transpose(3, 1, 2, 0).astype(numpy_dtype(accumulator(c.dtype(x))))
    )
    if window is not None:
        if isinstance(window, np.ndarray) and isinstance(table, np.ndarray):
            table = (table * window.reshape(points, 1, 1, 1)).astype(table.dtype)
        else:
            column = c.reshape(window, (points, 1, 1, 1))
            table = c.elementwise("window", [table, column], lambda s, t, w: t * w)
    terms, columns = points * parts, bins * 2

    def build(p: PrimBuilder) -> None:
        p.generic(
            "pppr",
            (batch, frames, columns, terms),
            [
                (p.inputs[0], lambda b, f, k, n: [b, f * (hop * parts) + n]),
                (p.inputs[1], lambda b, f, k, n: [n, k]),
            ],
            [(p.outputs[0], lambda b, f, k, n: [b, f, k])],
            lambda s, acc, a, b: acc + a * b,
            init=0,
        )

    source, matrix = c.reshape(x, (batch, extent * parts)), c.reshape(table, (terms, columns))
    result = ((batch, frames, columns), c.dtype(x))
    y = c.g.call("stft", [c.value(source), c.value(matrix)], [result], build)[0]
    return c.reshape(y, (batch, frames, bins, 2))
