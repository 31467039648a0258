"""Convolutions, as matrix products of blocks of windows; those of single channels as a product for each tap."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from landbridge.array_type import Array
from landbridge.numpy_kernels.registry import kernel
from landbridge.numpy_kernels.windows import padded, taps, windows

#: Bytes of windows that are copied at once: they stay in a second-level cache until the product has read them.
_BLOCK_BYTES = 1 << 20
#: Bytes of outputs of single channels that all taps are added to before the next ones.
_CHANNEL_BYTES = 1 << 17


@kernel("Conv", multiplies=True)
def conv(
    x: Array,
    weight: Array,
    bias: Array | None,
    out: Array,
    *,
    group: int,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> None:
    """Convolves ``x`` (N, C, ...) with ``weight`` (M, C / group, ...) into ``out`` (N, M, ...)."""
    kernel_extents = weight.shape[2:]
    source = padded(x, pads)
    channels, features = x.shape[1] // group, out.shape[1] // group
    by_tap = channels == 1 and features == 1
    for image, result in zip(source, out, strict=True):
        if by_tap:
            _by_tap(image, weight, result, strides, dilations)
            continue
        for g in range(group):
            _product(
                image[g * channels : (g + 1) * channels],
                weight[g * features : (g + 1) * features].reshape(features, -1),
                result[g * features : (g + 1) * features],
                (kernel_extents, strides, dilations),
            )
    if bias is not None:
        np.add(out, bias.reshape((-1,) + (1,) * len(kernel_extents)), out=out)


def _product(
    image: Array, weight: Array, result: Array, window: tuple[Sequence[int], Sequence[int], Sequence[int]]
) -> None:
    """Writes the convolution of one image (C, ...) and group, by blocks of rows of the result (M, ...)."""
    kernel_extents, strides, dilations = window
    outputs = result.shape[1:]
    features = len(weight)
    if prod(kernel_extents) == 1 and image.shape[1:] == outputs:
        np.matmul(weight, image.reshape(len(image), -1), out=result.reshape(features, -1))
        return
    view = windows(image, kernel_extents, strides, dilations, outputs)
    depth, line = weight.shape[1], prod(outputs[1:])
    rows = max(1, min(outputs[0], _BLOCK_BYTES // max(1, depth * line * image.itemsize)))
    columns = np.empty(depth * rows * line, image.dtype)
    whole = rows >= outputs[0]
    axis = 1 + len(kernel_extents)
    for begin in range(0, outputs[0], rows):
        count = min(rows, outputs[0] - begin)
        part = view[(slice(None),) * axis + (slice(begin, begin + count),)]
        block = columns[: depth * count * line]
        np.copyto(block.reshape(part.shape), part)
        if whole:
            np.matmul(weight, block.reshape(depth, -1), out=result.reshape(features, -1))
        else:
            found = np.matmul(weight, block.reshape(depth, -1))
            np.copyto(result[:, begin : begin + count], found.reshape(features, count, *outputs[1:]))


def _by_tap(image: Array, weight: Array, result: Array, strides: Sequence[int], dilations: Sequence[int]) -> None:
    """Writes the convolution of each channel of ``image`` with its own filter, tap by tap, by blocks of channels."""
    outputs, kernel_extents = result.shape[1:], weight.shape[2:]
    count = max(1, _CHANNEL_BYTES // max(1, prod(outputs) * result.itemsize))
    product = np.empty((min(count, len(result)), *outputs), result.dtype)
    ones = (1,) * len(outputs)
    for begin in range(0, len(result), count):
        block = result[begin : begin + count]
        scratch = product[: len(block)]
        filters = weight[begin : begin + count, 0]
        for position, read in taps(image[begin : begin + count], kernel_extents, strides, dilations, outputs):
            chosen: tuple[slice | int, ...] = (slice(None), *position)
            factor = filters[chosen].reshape(-1, *ones)
            if any(position):
                np.multiply(read, factor, out=scratch)
                np.add(block, scratch, out=block)
            else:
                np.multiply(read, factor, out=block)


@kernel("ConvTranspose", multiplies=True)
def conv_transpose(
    x: Array,
    weight: Array,
    bias: Array | None,
    out: Array,
    *,
    group: int,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> None:
    """The transposed convolution of ``x`` (N, C, ...) with ``weight`` (C, M / group, ...) into ``out`` (N, M, ...)."""
    rank = x.ndim - 2
    inputs, kernel_extents = x.shape[2:], weight.shape[2:]
    channels, features = x.shape[1] // group, weight.shape[1]
    full = [
        max((i - 1) * s + (k - 1) * d + 1, o + pads[axis])
        for axis, (i, s, k, d, o) in enumerate(
            zip(inputs, strides, kernel_extents, dilations, out.shape[2:], strict=True)
        )
    ]
    for image, result in zip(x, out, strict=True):
        summed = np.zeros((out.shape[1], *full), out.dtype)
        for g in range(group):
            flat = weight[g * channels : (g + 1) * channels].reshape(channels, -1)
            columns = np.matmul(flat.T, image[g * channels : (g + 1) * channels].reshape(channels, -1))
            columns = columns.reshape(features, *kernel_extents, *inputs)
            into = summed[g * features : (g + 1) * features]
            for position, written in taps(into, kernel_extents, strides, dilations, inputs):
                written += columns[(slice(None), *position)]
        read = tuple(slice(pads[i], pads[i] + out.shape[2 + i]) for i in range(rank))
        np.copyto(result, summed[(slice(None), *read)])
    if bias is not None:
        np.add(out, bias.reshape((-1,) + (1,) * rank), out=out)
