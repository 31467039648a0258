"""Operators of the domain ``landbridge``: running extremes and the most frequent element along an axis, as in torch."""

from __future__ import annotations

import numpy as np

from landbridge.operators import Array, HostValue, Results, host_operator


def _all_elements(x: HostValue, *, axis: int) -> Results:
    return [(x.shape, x.dtype), (x.shape, "int64")]


def _one_element(x: HostValue, *, axis: int) -> Results:
    shape = list(x.shape)
    if shape:
        shape[axis] = 1
    return [(shape, x.dtype), (shape, "int64")]


@host_operator("landbridge", "CumMax", results=_all_elements)
def cum_max(x: Array, *, axis: int) -> tuple[Array, Array]:
    """Returns the largest element up to each one along ``axis``, and its last position."""
    return _running(np.maximum, x, axis)


@host_operator("landbridge", "CumMin", results=_all_elements)
def cum_min(x: Array, *, axis: int) -> tuple[Array, Array]:
    """Returns the smallest element up to each one along ``axis``, and its last position."""
    return _running(np.minimum, x, axis)


def _running(extreme: np.ufunc, x: Array, axis: int) -> tuple[Array, Array]:
    """Returns running extremes and their positions; NaN is more extreme than any number, as it is to ``extreme``."""
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    found = extreme.accumulate(x, axis)
    here = (x == found) | (x != x)
    return found, np.maximum.accumulate(np.where(here, _places(x, axis), 0), axis)


@host_operator("landbridge", "Mode", results=_one_element)
def mode(x: Array, *, axis: int) -> tuple[Array, Array]:
    """Returns the most frequent element along ``axis``, the smallest of several, and its last position; the axis
    becomes 1.
    """
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    order = np.argsort(x, axis, kind="stable")
    ordered = np.take_along_axis(x, order, axis)
    places = _places(x, axis)
    begins = np.ones(x.shape, bool)
    after, before = (_part(ordered, axis, part) for part in (slice(1, None), slice(None, -1)))
    _part(begins, axis, slice(1, None))[...] = after != before
    times = places - np.maximum.accumulate(np.where(begins, places, 0), axis)
    last = np.argmax(times, axis, keepdims=True)
    return np.take_along_axis(ordered, last, axis), np.take_along_axis(order, last, axis)


def _places(x: Array, axis: int) -> Array:
    """Returns the position of each element along ``axis``."""
    shape = [1] * x.ndim
    shape[axis] = -1
    return np.broadcast_to(np.arange(x.shape[axis], dtype=np.int64).reshape(shape), x.shape)


def _part(x: Array, axis: int, part: slice) -> Array:
    return x[(*[slice(None)] * (axis % x.ndim), part)]
