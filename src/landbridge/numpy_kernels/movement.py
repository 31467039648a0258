"""Kernels that move elements: their order, copies and choices by indices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from landbridge.array_type import Array
from landbridge.numpy_kernels.registry import kernel


@kernel("Copy")
def copy(x: Array, out: Array) -> None:
    """Copies the elements, in their order, into another shape of as many."""
    np.copyto(out, x.reshape(out.shape))


@kernel("Transpose")
def transpose(x: Array, out: Array, *, perm: Sequence[int]) -> None:
    """Orders the axes as ``perm`` lists them."""
    np.copyto(out, x.transpose(perm))


@kernel("Concat")
def concat(*arrays: Array, axis: int) -> None:
    """Joins the arrays along ``axis``; the last array is the destination."""
    np.concatenate(arrays[:-1], axis, out=arrays[-1])


@kernel("Slice")
def slices(x: Array, out: Array, *, starts: Sequence[int], steps: Sequence[int]) -> None:
    """Takes as many elements of each axis as ``out`` has, from ``starts`` on, every ``steps``-th."""
    chosen = []
    for start, step, extent in zip(starts, steps, out.shape, strict=True):
        end = start + step * extent
        chosen.append(slice(start, end if end >= 0 else None, step))
    if out.size:
        np.copyto(out, x[tuple(chosen)])


@kernel("Split")
def split(x: Array, *parts: Array, axis: int) -> None:
    """Divides ``axis`` among the destinations."""
    begin = 0
    for part in parts:
        end = begin + part.shape[axis]
        np.copyto(part, x[(slice(None),) * axis + (slice(begin, end),)])
        begin = end


@kernel("Expand")
def expand(x: Array, out: Array) -> None:
    """Repeats axes of one element."""
    np.copyto(out, np.broadcast_to(x, out.shape))


@kernel("Tile")
def tile(x: Array, out: Array, *, repeats: Sequence[int]) -> None:
    """Repeats each axis as a whole."""
    np.copyto(out, np.tile(x, repeats))


@kernel("Pad")
def pad(x: Array, value: Array | None, out: Array, *, before: Sequence[int], after: Sequence[int], mode: str) -> None:
    """Adds elements before and after each axis; negative numbers leave out elements."""
    cut = tuple(slice(max(0, -b), e - max(0, -a)) for b, a, e in zip(before, after, x.shape, strict=True))
    widths = [(max(0, b), max(0, a)) for b, a in zip(before, after, strict=True)]
    if mode == "constant":
        out.fill(0 if value is None else value.reshape(())[()])
        inside = tuple(slice(b, e - a) for (b, a), e in zip(widths, out.shape, strict=True))
        np.copyto(out[inside], x[cut])
    else:
        np.copyto(out, np.pad(x[cut], widths, mode=mode))  # type: ignore[call-overload]


@kernel("Gather")
def gather(x: Array, indices: Array, out: Array, *, axis: int) -> None:
    """Takes the slices of ``axis`` at ``indices``; those out of range read the nearest."""
    np.take(x, _wrapped(indices, x.shape[axis]), axis, out=out, mode="clip")


@kernel("GatherElements")
def gather_elements(x: Array, indices: Array, out: Array, *, axis: int) -> None:
    """Takes of ``axis`` the element at each index; those out of range read the nearest."""
    at = np.clip(_wrapped(indices, x.shape[axis]), 0, x.shape[axis] - 1)
    cut = tuple(slice(None) if i == axis else slice(e) for i, e in enumerate(indices.shape))
    np.copyto(out, np.take_along_axis(x[cut], at, axis))


@kernel("GatherND")
def gather_nd(x: Array, indices: Array, out: Array) -> None:
    """Takes the parts of ``x`` at tuples of indices; those out of range read the nearest."""
    at = [np.clip(_wrapped(indices[..., i], e), 0, e - 1) for i, e in enumerate(x.shape[: indices.shape[-1]])]
    np.copyto(out, x[tuple(at)])


@kernel("ScatterND")
def scatter_nd(x: Array, indices: Array, updates: Array, out: Array) -> None:
    """Copies ``x`` and writes ``updates`` at tuples of indices; those out of range are dropped."""
    np.copyto(out, x)
    count = indices.shape[-1]
    rows = indices.reshape(-1, count)
    at = np.stack([_wrapped(rows[:, i], e) for i, e in enumerate(x.shape[:count])], 1)
    legal = ((at >= 0) & (at < np.array(x.shape[:count]))).all(1)
    out[tuple(at[legal].T)] = updates.reshape(len(rows), *x.shape[count:])[legal]


@kernel("ScatterElements")
def scatter_elements(x: Array, indices: Array, updates: Array, out: Array, *, axis: int, adds: bool) -> None:
    """Copies ``x`` and writes, or adds, ``updates`` at indices along ``axis``; those out of range are dropped. Of equal
    places the last update stays.
    """
    np.copyto(out, x)
    places: list[Array] = list(np.indices(indices.shape, sparse=True))
    places[axis] = _wrapped(indices, x.shape[axis])
    legal = (places[axis] >= 0) & (places[axis] < x.shape[axis])
    at = tuple(np.broadcast_to(each, indices.shape)[legal] for each in places)
    if adds:
        np.add.at(out, at, updates[legal])
    else:
        out[at] = updates[legal]


@kernel("Trilu")
def triangle(x: Array, out: Array, *, diagonal: int, upper: int) -> None:
    """Keeps the upper or lower triangle of the last two axes."""
    np.copyto(out, (np.triu if upper else np.tril)(x, diagonal))


@kernel("OneHot")
def one_hot(indices: Array, values: Array, out: Array, *, axis: int, depth: int) -> None:
    """The second of ``values`` where ``axis`` is at the index, else the first."""
    at = np.expand_dims(_wrapped(indices.astype(np.int64), depth), axis)
    shape = tuple(depth if i == axis else 1 for i in range(out.ndim))
    np.copyto(out, np.where(at == np.arange(depth).reshape(shape), values[1], values[0]))


@kernel("Interpolate")
def interpolate(x: Array, low: Array, high: Array, share: Array, out: Array, *, axis: int) -> None:
    """Takes of ``axis`` the element at ``low`` and that at ``high``, which counts by its ``share``."""
    first, second = np.take(x, low, axis), np.take(x, high, axis)
    second -= first
    second *= share.reshape((-1,) + (1,) * (x.ndim - axis - 1))
    np.add(first, second, out=out)


def _wrapped(indices: Array, extent: int) -> Array:
    """Returns ``indices`` with negative ones counted from the end."""
    return np.where(indices < 0, indices + extent, indices)
