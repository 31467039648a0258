"""Elements of 8, 16 and 32 bits that stand for floats, with a scale for all or for each index of an axis."""

from __future__ import annotations

import numpy as np

from landbridge.array_type import Array
from landbridge.numpy_kernels.registry import kernel


@kernel("QuantizeLinear")
def quantize(x: Array, scale: Array, zero: Array | None, out: Array, *, axis: int) -> None:
    """x / scale, rounded to even, plus the zero point, limited to what the dtype of ``out`` holds."""
    limits = np.iinfo(out.dtype)
    found = np.asarray(x / _along(scale, axis, x.ndim))
    np.rint(found, out=found)
    if zero is not None:
        found += _along(zero, axis, x.ndim)
    np.copyto(out, np.clip(found, limits.min, limits.max), casting="unsafe")


@kernel("DequantizeLinear")
def dequantize(x: Array, scale: Array, zero: Array | None, out: Array, *, axis: int) -> None:
    """(x - zero point) * scale."""
    np.copyto(out, x, casting="unsafe")
    if zero is not None:
        np.subtract(out, _along(zero, axis, x.ndim).astype(out.dtype), out=out)
    np.multiply(out, _along(scale, axis, x.ndim), out=out)


def _along(parameter: Array, axis: int, rank: int) -> Array:
    """Returns a parameter of one element as it is, one of an axis so that it is broadcast to the other axes."""
    if parameter.size == 1:
        return parameter.reshape(())
    return parameter.reshape([-1 if i == axis else 1 for i in range(rank)])
