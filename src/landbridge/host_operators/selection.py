"""Operators that select elements; the size of a result is known only after they run."""

from __future__ import annotations

from typing import Any

import numpy as np

from landbridge.operators import Array, HostValue, Results, host_operator


def _nonzero_results(x: HostValue) -> Results:
    return [((max(len(x.shape), 1), None), "int64")]


@host_operator("", "NonZero", results=_nonzero_results)
def nonzero(x: Array) -> Array:
    """Returns the indices of elements that are not zero, a column each."""
    return np.array(np.nonzero(np.atleast_1d(x)), np.int64)


def _compress_results(x: HostValue, condition: HostValue, *, axis: int | None = None) -> Results:
    shape: list[Any] = [None] if axis is None else list(x.shape)
    shape[0 if axis is None else axis] = None
    return [(shape, x.dtype)]


@host_operator("", "Compress", results=_compress_results)
def compress(x: Array, condition: Array, *, axis: int | None = None) -> Array:
    """Returns the elements along ``axis``, or of the flattened tensor, whose condition is true."""
    flat = x if axis is not None else x.reshape(-1)
    at = 0 if axis is None else axis
    return np.compress(condition[: flat.shape[at]].astype(bool), flat, at)


def _unique_results(x: HostValue, *, axis: int | None = None, sorted: int = 1) -> Results:
    shape: list[Any] = [None] if axis is None else list(x.shape)
    shape[0 if axis is None else axis] = None
    many = x.shape[axis] if axis is not None else None
    if axis is None:
        many = 1
        for extent in x.shape:
            many = many * extent
    return [(shape, x.dtype), ((None,), "int64"), ((many,), "int64"), ((None,), "int64")]


@host_operator("", "Unique", results=_unique_results)
def unique(x: Array, *, axis: int | None = None, sorted: int = 1) -> tuple[Array, ...]:
    """Returns distinct values, the first index of each, the index of the value of each element, and the counts."""
    found = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    values, first, inverse, counts = (np.asarray(each) for each in found)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        back = np.argsort(order)
        values, first, counts = np.take(values, order, axis or 0), first[order], counts[order]
        inverse = back[inverse]
    return values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)
