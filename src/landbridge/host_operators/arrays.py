"""Operators on whole arrays: determinants, bits as another dtype, rows written into a cache."""

from __future__ import annotations

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.operators import Array, HostValue, Results, host_operator


def _det_results(x: HostValue) -> Results:
    return [(x.shape[:-2], x.dtype)]


@host_operator("", "Det", results=_det_results)
def det(x: Array) -> Array:
    """Computes the determinant of each matrix of the last two axes."""
    wide = x.astype(np.float64)
    return np.asarray(np.linalg.det(wide)).astype(x.dtype)


def _bits_results(x: HostValue, *, to: str) -> Results:
    return [(x.shape, to)]


@host_operator("", "BitCast", results=_bits_results)
def bit_cast(x: Array, *, to: str) -> Array:
    """Returns the same bits as another dtype of the same size."""
    return np.ascontiguousarray(x).reshape(x.shape).view(numpy_dtype(to))


def _scatter_results(cache: HostValue, *_: HostValue | None, **__: object) -> Results:
    return [(cache.shape, cache.dtype)]


@host_operator("", "TensorScatter", results=_scatter_results)
def tensor_scatter(
    cache: Array, update: Array, starts: Array | None = None, *, axis: int = -2, mode: str = "linear"
) -> Array:
    """Returns ``cache`` with the elements of ``update`` written along ``axis``, from a separate position for each
    sequence of the batch.
    """
    created = cache.copy()
    along = axis % cache.ndim - 1
    for batch in range(cache.shape[0]):
        start = 0 if starts is None else int(starts[batch])
        at = start + np.arange(update.shape[along + 1])
        if mode == "circular":
            at %= cache.shape[along + 1]
        np.moveaxis(created[batch], along, 0)[at] = np.moveaxis(update[batch], along, 0)
    return created
