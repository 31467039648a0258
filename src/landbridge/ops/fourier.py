"""Fourier transforms: of few points as one product with a table, of more by a fast transform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.operators import kernel
from landbridge.ops.accuracy import Accuracy, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.fast_fourier import Signal, Spectrum, roots, transformed
from landbridge.ops.fourier_plan import fourier_plan
from landbridge.ops.legal import at_least, between
from landbridge.ops.matrix_product import multiply_add
from landbridge.ops.rules import rules
from landbridge.sizes.size import Size, product, smallest

#: Each number is rounded in a product of at most 128 points of two parts and in a few operations of each butterfly.
TRANSFORMS = Accuracy(150, sums=True, note="of the magnitudes of all points")


def _transform(c: OpContext, signal: Signal, spectrum: Spectrum) -> Operand:
    """Computes ``spectrum`` of ``signal``."""
    plan = fourier_plan(spectrum.points, signal.parts)
    if plan.is_table and isinstance(signal.used, int):
        return _by_table(c, signal, spectrum, signal.used)
    return transformed(c, signal, spectrum, plan)


def _by_table(c: OpContext, signal: Signal, spectrum: Spectrum, used: int) -> Operand:
    """Computes the transform of ``used`` points as a product with a table of all of them and of all bins."""
    bins, parts, outs = spectrum.bins, signal.parts, spectrum.parts
    w = roots(np.outer(np.arange(used), np.arange(bins)), spectrum.points, 1 if spectrum.inverse else -1)
    w = w / spectrum.points if spectrum.inverse else w
    # [point, in part, bin, out part]: rows lie as the signal does, and columns as the result
    both = np.stack([np.stack([w.real, w.imag], -1), np.stack([-w.imag, w.real], -1)], 1)[:, :parts, :, :outs]
    kind, window = numpy_dtype(accumulator(c.dtype(signal.operand))), signal.window
    if isinstance(window, np.ndarray):
        both = both * window[:used].astype(np.float64).reshape(used, 1, 1, 1)
    table: Operand = np.ascontiguousarray(both, kind)
    if window is not None and not isinstance(window, np.ndarray):
        column = c.reshape(window, (used, 1, 1, 1))
        table = c.elementwise("window", [table, column], lambda s, t, w: t * w)
    n = len(signal.rows)

    def build(p: PrimBuilder) -> None:
        p.generic(
            "p" * (n + 2) + "rr",
            (*signal.rows, bins, outs, used, parts),
            [
                (p.inputs[0], lambda *d: signal.location(d[:n], d[n + 2], d[n + 3])),
                (p.inputs[1], lambda *d: [d[n + 2], d[n + 3], d[n], d[n + 1]]),
            ],
            [(p.outputs[0], lambda *d: spectrum.location(d[:n], d[n], d[n + 1]))],
            multiply_add,
            init=0,
        )

    operands = [c.value(signal.operand), c.value(table)]
    return c.g.call("fourier", operands, [(spectrum.shape, c.dtype(signal.operand))], build)[0]


@rules(
    "input: _ ... parts",
    "dft_length?: () | 1",
    "axis?: () | 1",
    attributes={"axis": between("-len(input)", "len(input) - 2", default=-2), "dft_length": at_least(1, below=1 << 31)},
    where=("parts in (1, 2)", "axis != -1", "input[axis] > 0"),
)
@kernel("", "DFT", since=20)
@accuracy(TRANSFORMS)
def dft(c: OpContext, x: Operand, length: Operand | None = None, axis: Operand | None = None) -> Operand:
    """Computes the transform along the input ``axis``, -2 by default."""
    return _dft(c, x, length, -2 if axis is None else int(c.constant(axis, "axis").reshape(-1)[0]))


@rules(
    "input: _ ... parts",
    "dft_length?: () | 1",
    attributes={"axis": between("-len(input)", "len(input) - 2", default=1), "dft_length": at_least(1, below=1 << 31)},
    where=("parts in (1, 2)", "axis != -1", "input[axis] > 0"),
)
@kernel("", "DFT", since=17)
@accuracy(TRANSFORMS)
def dft_17(c: OpContext, x: Operand, length: Operand | None = None) -> Operand:
    """Computes the transform along the attribute ``axis``, 1 by default."""
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
    limit = points // 2 + 1 if mirrored else points
    used = smallest(extent, limit)
    before, inner = product(shape[:axis]), product(shape[axis + 1 : -1])

    def location(lead: Sequence[Any], at: Any, part: Any) -> list[Any]:
        return [lead[0], at, lead[1], part]

    operand = c.reshape(x, (before, extent, inner, parts))
    outs = 1 if mirrored else 2
    signal = Signal(operand, (before, inner), used, parts, location, _twice(points, limit) if mirrored else None)
    y = _transform(c, signal, Spectrum(points, bins, outs, inverse, (before, bins, inner, outs), location))
    return c.reshape(y, [*(bins if a == axis else e for a, e in enumerate(shape[:-1])), outs])


def _twice(points: int, half: int) -> np.ndarray[Any, Any]:
    """Returns how many bins of the whole spectrum each bin of ``half`` stands for, as the other half are conjugates:
    two, except for the first, and the middle one of an even number of points.
    """
    bins = np.arange(half)
    return np.where((bins == 0) | (2 * bins == points), 1.0, 2.0)


@rules(
    "signal: B L | B L 1 | B L 2",
    "frame_step: () | 1",
    "window?: P",
    "frame_length?: () | 1",
    attributes={"frame_step": at_least(1), "frame_length": at_least(1)},
    where=("P > 0", "P <= L", "frame_length <= L", "frame_length == P"),
)
@kernel("", "STFT")
@accuracy(TRANSFORMS)
def stft(
    c: OpContext, x: Operand, step: Operand, window: Operand | None = None, length: Operand | None = None
) -> Operand:
    """Computes transforms of windows every ``step`` elements: [batch, frames, bins, 2]."""
    (batch, extent, *rest), hop = c.shape(x), int(c.constant(step, "frame_step").reshape(-1)[0])
    parts = rest[0] if rest else 1
    points = c.shape(window)[0] if window is not None else (c.ints("frame_length", length) or [0])[0]
    frames = (extent - points) // hop + 1
    bins = points // 2 + 1 if c.attribute("onesided", 1) else points

    def source(lead: Sequence[Any], at: Any, part: Any) -> list[Any]:
        return [lead[0], lead[1] * hop + at, part]

    def target(lead: Sequence[Any], at: Any, part: Any) -> list[Any]:
        return [*lead, at, part]

    signal = Signal(c.reshape(x, (batch, extent, parts)), (batch, frames), points, parts, source, window)
    return _transform(c, signal, Spectrum(points, bins, 2, False, (batch, frames, bins, 2), target))
