"""Softmax, and normalizations by mean and variance. Each may write its result onto its first operand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from landbridge.array_type import Array
from landbridge.numpy_kernels.registry import kernel


@kernel("Softmax")
def softmax(x: Array, out: Array, *, axes: Sequence[int]) -> None:
    """exp(x) over its sum along ``axes``."""
    along = tuple(axes)
    np.subtract(x, x.max(along, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(along, keepdims=True), out=out)


@kernel("LogSoftmax")
def log_softmax(x: Array, out: Array, *, axes: Sequence[int]) -> None:
    """The logarithm of softmax."""
    along = tuple(axes)
    np.subtract(x, x.max(along, keepdims=True), out=out)
    np.subtract(out, np.log(np.exp(out).sum(along, keepdims=True)), out=out)


@kernel("BatchNormalization")
def batch_normalization(
    x: Array, scale: Array, bias: Array, mean: Array, variance: Array, out: Array, *, epsilon: float
) -> None:
    """Scales and shifts each channel by constants."""
    shape = (-1,) + (1,) * (x.ndim - 2)
    factor = scale / np.sqrt(variance + epsilon)
    np.multiply(x, factor.reshape(shape), out=out)
    np.add(out, (bias - mean * factor).reshape(shape), out=out)


@kernel("InstanceNormalization")
def instance_normalization(x: Array, scale: Array, bias: Array, out: Array, *, epsilon: float) -> None:
    """Normalizes each channel of each image by its own mean and variance."""
    shape = (-1,) + (1,) * (x.ndim - 2)
    _normalize(x, out, tuple(range(2, x.ndim)), epsilon)
    np.multiply(out, scale.reshape(shape), out=out)
    np.add(out, bias.reshape(shape), out=out)


@kernel("LayerNormalization")
def layer_normalization(x: Array, scale: Array, bias: Array | None, out: Array, *, axis: int, epsilon: float) -> None:
    """Normalizes the axes from ``axis`` on by their mean and variance."""
    _normalize(x, out, tuple(range(axis, x.ndim)), epsilon)
    np.multiply(out, scale, out=out)
    if bias is not None:
        np.add(out, bias, out=out)


@kernel("RMSNormalization")
def rms_normalization(x: Array, scale: Array, out: Array, *, axis: int, epsilon: float) -> None:
    """Divides the axes from ``axis`` on by the root of their mean square."""
    along = tuple(range(axis, x.ndim))
    np.divide(x, np.sqrt(np.square(x).mean(along, keepdims=True) + epsilon), out=out)
    np.multiply(out, scale, out=out)


@kernel("LRN")
def local_response(x: Array, out: Array, *, alpha: float, beta: float, bias: float, size: int) -> None:
    """Divides by the sum of squares of ``size`` channels around each."""
    squares, summed = np.square(x), np.zeros_like(x)
    before, channels = (size - 1) // 2, x.shape[1]
    for shift in range(-before, size - before):
        first, end = max(0, -shift), min(channels, channels - shift)
        if first < end:
            summed[:, first:end] += squares[:, first + shift : end + shift]
    np.multiply(x, (bias + alpha / size * summed) ** -beta, out=out)


def _normalize(x: Array, out: Array, along: tuple[int, ...], epsilon: float) -> None:
    """Writes ``x`` minus its mean over its standard deviation, both along ``along``."""
    np.subtract(x, x.mean(along, keepdims=True), out=out)
    np.divide(out, np.sqrt(np.square(out).mean(along, keepdims=True) + epsilon), out=out)
