"""Products of elements of 8 bits, exact: of floats that hold every sum of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from landbridge.array_type import Array
from landbridge.numpy_kernels.convolutions import conv
from landbridge.numpy_kernels.registry import kernel

#: Products of two differences of elements of 8 bits whose sum float32 holds exactly: it has 24 bits, a product 16.
_MOST_OF_FLOAT32 = (1 << 24) // (255 * 255)


@kernel("DynamicQuantizeLinear")
def quantize_by_range(x: Array, out: Array, scale: Array, zero: Array) -> None:
    """Divides the range of ``x`` and 0 into 255 steps: elements of uint8, the step, and the element that is 0."""
    low, high = np.minimum(x.min(), np.float32(0)), np.maximum(x.max(), np.float32(0))
    scale[...] = (high - low) / np.float32(255)
    zero[...] = np.rint(np.clip(0 - np.nan_to_num(low / scale), 0, 255))
    found = np.asarray(np.nan_to_num(x / scale))  # numpy makes a scalar of one without axes
    np.rint(found, out=found)
    found += zero
    np.copyto(out, np.clip(found, 0, 255), casting="unsafe")


@kernel("MatMulInteger", multiplies=True)
def matmul_integer(a: Array, b: Array, a_zero: Array | None, b_zero: Array | None, out: Array) -> None:
    """The product of ``a`` and ``b`` less their zero points; that of ``b`` may be one for each column."""
    dtype = _dtype_for(a.shape[-1])
    np.copyto(out, np.matmul(_centered(a, a_zero, dtype), _centered(b, b_zero, dtype)), casting="unsafe")


@kernel("ConvInteger", multiplies=True)
def conv_integer(
    x: Array,
    weight: Array,
    x_zero: Array | None,
    weight_zero: Array | None,
    out: Array,
    *,
    group: int,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> None:
    """Convolves ``x`` less its zero point with ``weight``; a zero point of each filter may be subtracted from that."""
    dtype = _dtype_for(prod(weight.shape[1:]))
    by_filter = None if weight_zero is None else weight_zero.reshape(-1, *(1,) * (weight.ndim - 1))
    found = np.empty(out.shape, dtype)
    source, filters = _centered(x, x_zero, dtype), _centered(weight, by_filter, dtype)
    conv(source, filters, None, found, group=group, strides=strides, dilations=dilations, pads=pads)
    np.copyto(out, found, casting="unsafe")


def _dtype_for(terms: int) -> type[np.floating]:
    return np.float32 if terms <= _MOST_OF_FLOAT32 else np.float64


def _centered(x: Array, zero: Array | None, dtype: type[np.floating]) -> Array:
    found = x.astype(dtype)
    if zero is not None:
        found -= zero.astype(dtype)
    return found
