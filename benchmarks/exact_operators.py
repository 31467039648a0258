"""Operators in numpy, for graphs whose floats are doubles: where onnx's evaluator is slow, or means something else.

They are loops over the places of a window, each of which is one product or one maximum of whole arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from onnx.reference.op_run import OpRun

Array: TypeAlias = np.ndarray[Any, Any]


class BatchNormalization(OpRun):  # type: ignore[misc]
    """That of a model which does not train; the evaluator's of older opsets does where there is a momentum."""

    op_domain = ""

    def _run(
        self, x: Array, scale: Array, bias: Array, mean: Array, var: Array, epsilon: float = 1e-5, **_: object
    ) -> tuple[Array]:
        axes = (slice(None), *[None] * (x.ndim - 2))
        return (((x - mean[axes]) / np.sqrt(var[axes] + epsilon) * scale[axes] + bias[axes]).astype(x.dtype),)


class Conv(OpRun):  # type: ignore[misc]
    """A product of matrices for each place of the window."""

    op_domain = ""

    def _run(self, x: Array, w: Array, b: Array | None = None, **attributes: Any) -> tuple[Array]:
        group = attributes.get("group") or 1
        window = _Window(x.shape[2:], w.shape[2:], attributes)
        padded = window.pad(x, 0.0)
        y = np.zeros((x.shape[0], w.shape[0], *window.out), x.dtype)
        inner, outer = w.shape[1], w.shape[0] // group
        for place, read in window.places():
            seen = padded[(slice(None), slice(None), *read)].reshape(x.shape[0], group, inner, -1)
            weights = w[(slice(None), slice(None), *place)].reshape(group, outer, inner)
            y += (weights @ seen).reshape(y.shape)
        return (y if b is None else y + b.reshape(-1, *[1] * (x.ndim - 2)),)


class ConvTranspose(OpRun):  # type: ignore[misc]
    """A product of matrices for each place of the window, added where it goes."""

    op_domain = ""

    def _run(self, x: Array, w: Array, b: Array | None = None, **attributes: Any) -> tuple[Array]:
        spatial = x.ndim - 2
        group, ones = attributes.get("group") or 1, [1] * spatial
        strides, dilations = attributes.get("strides") or ones, attributes.get("dilations") or ones
        pads, more = attributes.get("pads") or [0] * 2 * spatial, attributes.get("output_padding") or [0] * spatial
        if attributes.get("output_shape") or (attributes.get("auto_pad") or "NOTSET") != "NOTSET":
            raise NotImplementedError("a ConvTranspose whose padding follows from its output")
        whole = [
            (n - 1) * s + (k - 1) * d + 1 + extra
            for n, k, s, d, extra in zip(x.shape[2:], w.shape[2:], strides, dilations, more, strict=True)
        ]
        y = np.zeros((x.shape[0], w.shape[1] * group, *whole), x.dtype)
        data = x.reshape(x.shape[0], group, x.shape[1] // group, -1)
        for place in np.ndindex(*w.shape[2:]):
            weights = w[(slice(None), slice(None), *place)].reshape(group, -1, w.shape[1])
            part = (weights.transpose(0, 2, 1) @ data).reshape(x.shape[0], y.shape[1], *x.shape[2:])
            to = [
                slice(i * d, i * d + (n - 1) * s + 1, s)
                for i, d, n, s in zip(place, dilations, x.shape[2:], strides, strict=True)
            ]
            y[(slice(None), slice(None), *to)] += part
        cut = [slice(pads[i], whole[i] - pads[i + spatial]) for i in range(spatial)]
        y = y[(slice(None), slice(None), *cut)]
        return (y if b is None else y + b.reshape(-1, *[1] * spatial),)


class MaxPool(OpRun):  # type: ignore[misc]
    """The values alone, without where they were."""

    op_domain = ""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        window = _Window(x.shape[2:], attributes["kernel_shape"], attributes)
        padded = window.pad(x, -np.inf)
        parts = (padded[(slice(None), slice(None), *read)] for _, read in window.places())
        return (np.maximum.reduce(list(parts)),)


class AveragePool(OpRun):  # type: ignore[misc]
    """The mean of what a window reads: padding counts if the node says so, what is beyond it never does."""

    op_domain = ""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        window = _Window(x.shape[2:], attributes["kernel_shape"], attributes)
        counts = window.pad(np.ones((1, 1, *x.shape[2:]), x.dtype), 0.0)
        if attributes.get("count_include_pad"):
            counts[(slice(None), slice(None), *(slice(0, low + n + high) for low, n, high in window.declared()))] = 1
        padded = window.pad(x, 0.0)
        total, number = 0.0, 0.0
        for _, read in window.places():
            total = total + padded[(slice(None), slice(None), *read)]
            number = number + counts[(slice(None), slice(None), *read)]
        return (total / number,)


class GlobalMaxPool(OpRun):  # type: ignore[misc]
    """Over all axes after the channels; the evaluator's takes two of them, whichever there are."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (x.max(tuple(range(2, x.ndim)), keepdims=True),)


class LRN(OpRun):  # type: ignore[misc]
    """Over the channels around each one; the evaluator's does as many channels as there are pictures."""

    op_domain = ""

    def _run(self, x: Array, *, alpha: float, beta: float, bias: float, size: int) -> tuple[Array]:
        before, after = (size - 1) // 2, size // 2
        squares = np.pad(x**2, [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)])
        near = sum(squares[:, i : i + x.shape[1]] for i in range(size))
        return (x / (bias + alpha / size * near) ** beta,)


class STFT(OpRun):  # type: ignore[misc]
    """Of real signals, by numpy's transform; the evaluator's needs a window and more than a frame."""

    op_domain = ""

    def _run(
        self, signal: Array, step: Array, window: Array | None = None, length: Array | None = None, onesided: int = 1
    ) -> tuple[Array]:
        if signal.ndim == 3 and signal.shape[2] != 1:
            raise NotImplementedError("an STFT of complex signals")
        flat = signal.reshape(signal.shape[:2])
        size = int(length) if length is not None else int(np.asarray(window).size)
        frames = np.lib.stride_tricks.sliding_window_view(flat, size, 1)[:, :: int(step)]
        weighed = frames if window is None else frames * window
        found = np.fft.rfft(weighed) if onesided else np.fft.fft(weighed)
        return (np.stack([found.real, found.imag], -1).astype(signal.dtype),)


class FlatSoftmax(OpRun):  # type: ignore[misc]
    """The Softmax of opsets before 13: over all axes from ``axis`` on."""

    op_domain = "flat"

    def _run(self, x: Array, axis: int) -> tuple[Array]:
        rows = x.reshape(math.prod(x.shape[:axis]), -1)
        powers = np.exp(rows - rows.max(1, keepdims=True))
        return ((powers / powers.sum(1, keepdims=True)).reshape(x.shape),)


class _Window:
    """Where a window reads ``extents``, by the attributes that convolutions and pools share."""

    def __init__(self, extents: Sequence[int], kernel: Sequence[int], attributes: dict[str, Any]) -> None:
        n = len(extents)
        self.extents, self.kernel = extents, kernel
        self.strides = attributes.get("strides") or [1] * n
        self.dilations = attributes.get("dilations") or [1] * n
        wide = [(k - 1) * d + 1 for k, d in zip(kernel, self.dilations, strict=True)]
        auto = attributes.get("auto_pad") or "NOTSET"
        if auto.startswith("SAME"):
            self.out = [-(-e // s) for e, s in zip(extents, self.strides, strict=True)]
            missing = [
                max(0, (o - 1) * s + k - e) for o, s, k, e in zip(self.out, self.strides, wide, extents, strict=True)
            ]
            smaller = [m // 2 for m in missing]
            larger = [m - s for m, s in zip(missing, smaller, strict=True)]
            self.low, self.high = (smaller, larger) if auto == "SAME_UPPER" else (larger, smaller)
            return
        pads = [0] * 2 * n if auto == "VALID" else attributes.get("pads") or [0] * 2 * n
        self.low, self.high = list(pads[:n]), list(pads[n:])
        whole = [low + e + high - k for low, e, high, k in zip(self.low, extents, self.high, wide, strict=True)]
        if attributes.get("ceil_mode"):  # a window that begins in the padding after the data does not count
            self.out = [
                -(-a // s) + 1 - (-(-a // s) * s >= e + low)
                for a, s, e, low in zip(whole, self.strides, extents, self.low, strict=True)
            ]
        else:
            self.out = [a // s + 1 for a, s in zip(whole, self.strides, strict=True)]

    def declared(self) -> Iterator[tuple[int, int, int]]:
        """Padding before, extent and padding after, by axis."""
        return zip(self.low, self.extents, self.high, strict=True)

    def pad(self, x: Array, value: float) -> Array:
        """``x`` with ``value`` around it, as far as the last window reads."""
        ends = [
            max(high, (o - 1) * s + (k - 1) * d + 1 - low - e)
            for (low, e, high), o, s, k, d in zip(
                self.declared(), self.out, self.strides, self.kernel, self.dilations, strict=True
            )
        ]
        return np.pad(x, [(0, 0), (0, 0), *zip(self.low, ends, strict=True)], constant_values=value)

    def places(self) -> Iterator[tuple[tuple[int, ...], list[slice]]]:
        """Each place of the window, and what all windows read there, of padded data."""
        for place in product(*map(range, self.kernel)):
            yield (
                place,
                [
                    slice(i * d, i * d + (o - 1) * s + 1, s)
                    for i, d, o, s in zip(place, self.dilations, self.out, self.strides, strict=True)
                ],
            )


#: Those that mean the same in every opset.
OPERATORS: tuple[type[OpRun], ...] = (
    AveragePool,
    BatchNormalization,
    Conv,
    ConvTranspose,
    GlobalMaxPool,
    LRN,
    MaxPool,
    STFT,
)
