"""Operators that move elements to a shape that data decide, where they have no kernel.

The definitions: https://onnx.ai/onnx/operators
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, prod
from typing import Any

import numpy as np

from landbridge.operators import Array, HostValue, Results, host_operator
from landbridge.process.available_memory import check_available


def whole(x: Array) -> list[int]:
    """Returns the elements of an integer tensor as a list."""
    return [int(number) for number in x.reshape(-1).tolist()]


def count_of(x: HostValue) -> int:
    """Returns the number of elements of a tensor, from which ranks follow, so it must be known."""
    (length,) = x.shape or (1,)
    return int(length)


def open_shape(rank: int, dtype: str) -> tuple[list[None], str]:
    """Returns a result spec whose extents are all decided by data."""
    return [None] * rank, dtype


def _same_rank(x: HostValue, *_: HostValue | None, **__: Any) -> Results:
    return [open_shape(len(x.shape), x.dtype)]


@host_operator("", "Reshape", since=5, results=lambda x, shape, **_: [open_shape(count_of(shape), x.dtype)])
def reshape(x: Array, shape: Array, *, allowzero: int = 0) -> Array:
    """Reshapes; 0 keeps an extent (unless ``allowzero``), one -1 takes the rest."""
    wanted = whole(shape)
    if not allowzero:
        wanted = [x.shape[i] if e == 0 else e for i, e in enumerate(wanted)]
    return x.reshape(wanted)


@host_operator(
    "",
    "Expand",
    since=8,
    results=lambda x, shape, **_: [open_shape(max(len(x.shape), count_of(shape)), x.dtype)],
)
def expand(x: Array, shape: Array) -> Array:
    """Broadcasts ``x`` and ``shape`` with each other."""
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(whole(shape)))).copy()


@host_operator("", "Tile", since=6, results=_same_rank)
def tile(x: Array, repeats: Array) -> Array:
    """Repeats the tensor along each axis."""
    return np.tile(x, whole(repeats))


@host_operator(
    "", "Squeeze", since=13, results=lambda x, axes, **_: [open_shape(len(x.shape) - count_of(axes), x.dtype)]
)
def squeeze(x: Array, axes: Array) -> Array:
    """Removes the given axes, of extent 1."""
    return np.squeeze(x, tuple({axis % x.ndim for axis in whole(axes)}))


@host_operator(
    "", "Unsqueeze", since=13, results=lambda x, axes, **_: [open_shape(len(x.shape) + count_of(axes), x.dtype)]
)
def unsqueeze(x: Array, axes: Array) -> Array:
    """Inserts axes of extent 1."""
    return np.expand_dims(x, tuple(whole(axes)))


@host_operator("", "Slice", since=10, results=_same_rank)
def slice_value(x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Array:
    """Slices along ``axes``. For negative steps too, a start before the first element means the first one."""
    begins, stops = whole(starts), whole(ends)
    along = range(len(begins)) if axes is None else whole(axes)
    by = [1] * len(begins) if steps is None else whole(steps)
    cut = [slice(None)] * x.ndim
    for axis, start, stop, step in zip(along, begins, stops, by, strict=True):
        extent = x.shape[axis]
        start = max(start, -extent)
        cut[axis] = slice(start, None if step < 0 and stop < -extent else stop, step)
    return np.ascontiguousarray(x[tuple(cut)])


def _split_results(x: HostValue, sizes: HostValue, *, axis: int = 0, **_: Any) -> Results:
    shape = [None if i == axis % len(x.shape) else e for i, e in enumerate(x.shape)]
    return [(shape, x.dtype)] * count_of(sizes)


@host_operator("", "Split", since=13, results=_split_results)
def split(x: Array, sizes: Array, *, axis: int = 0) -> list[Array]:
    """Splits along ``axis`` into consecutive parts of given sizes."""
    parts = whole(sizes)
    if sum(parts) != x.shape[axis] or min(parts) < 0:
        raise ValueError(f"split is {parts}; numbers from 0 with the sum {x.shape[axis]} are legal")
    return [np.ascontiguousarray(each) for each in np.split(x, np.cumsum(parts)[:-1], axis)]


@host_operator("", "Pad", since=11, results=_same_rank)
def pad(
    x: Array, pads: Array, value: Array | None = None, axes: Array | None = None, *, mode: str = "constant"
) -> Array:
    """Adds elements before and after each axis (negative: cuts them off): constant, edge, reflect or wrap."""
    amounts = whole(pads)
    along = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in whole(axes)]
    before, after = [0] * x.ndim, [0] * x.ndim
    for i, axis in enumerate(along):
        before[axis], after[axis] = amounts[i], amounts[len(along) + i]
    retained = tuple(
        slice(max(-low, 0), extent - max(-high, 0)) for low, high, extent in zip(before, after, x.shape, strict=True)
    )
    widths = [(max(low, 0), max(high, 0)) for low, high in zip(before, after, strict=True)]
    extents = [max(extent + low + high, 0) for extent, low, high in zip(x.shape, before, after, strict=True)]
    _check_bytes("Pad", prod(map(int, extents)) * x.itemsize)
    if mode == "constant":
        fill = 0 if value is None or value.size == 0 else value.reshape(-1)[0]
        return np.pad(x[retained], widths, constant_values=fill)
    padding: Any = mode
    return np.pad(x[retained], widths, mode=padding)


def _one_hot_results(indices: HostValue, depth: HostValue, values: HostValue, *, axis: int = -1) -> Results:
    at = axis % (len(indices.shape) + 1)
    shape: Sequence[Any] = [*indices.shape[:at], None, *indices.shape[at:]]
    return [(shape, values.dtype)]


@host_operator("", "OneHot", since=9, results=_one_hot_results)
def one_hot(indices: Array, depth: Array, values: Array, *, axis: int = -1) -> Array:
    """Returns the on value where the position along ``axis`` equals the index, else the off value."""
    (count,) = whole(depth)
    _check_bytes("OneHot", int(count) * indices.size * values.itemsize)
    places = indices.astype(np.int64)
    places = np.expand_dims(np.where(places < 0, places + count, places), axis)
    along = [1] * places.ndim
    along[axis] = count
    return np.asarray(np.where(places == np.arange(count).reshape(along), values[1], values[0]))


@host_operator("", "Range", since=11, results=lambda start, *_: [([None], start.dtype)])
def range_values(start: Array, limit: Array, delta: Array) -> Array:
    """Returns ``start``, ``start + delta``, ... before ``limit``."""
    ends = [x.reshape(-1)[0] for x in (start, limit, delta)]
    first, end, step = map(float, ends)
    count = (end - first) / step if step else 0.0
    if 0 < count < inf:  # otherwise arange reports the error
        _check_bytes("Range", ceil(count) * start.itemsize)
    return np.arange(*ends, dtype=start.dtype)


def _check_bytes(op_type: str, nbytes: int) -> None:
    """Raises OutOfMemoryError where memory is too small for a result of ``nbytes``, whose size data decide."""
    check_available(nbytes, f"the result of {op_type}", "give the run smaller sizes, or end other programs")
