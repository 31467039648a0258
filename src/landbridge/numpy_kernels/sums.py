"""Reductions along axes: sums, extremes, and their positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from landbridge.array_type import Array
from landbridge.numpy_kernels.registry import kernel

_Reduce = Callable[[Array, tuple[int, ...]], Array]


def _norm(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(np.sqrt(np.square(x).sum(axes)))


def _log_sum_exp(x: Array, axes: tuple[int, ...]) -> Array:
    largest = np.nan_to_num(x.max(axes, keepdims=True), neginf=0, posinf=0)
    return np.asarray(np.log(np.exp(x - largest).sum(axes)) + largest.squeeze(axes))


_REDUCTIONS: dict[str, _Reduce] = {
    "ReduceL1": lambda x, axes: np.abs(x).sum(axes),
    "ReduceL2": _norm,
    "ReduceLogSum": lambda x, axes: np.log(x.sum(axes)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": lambda x, axes: x.max(axes),
    "ReduceMean": lambda x, axes: x.mean(axes),
    "ReduceMin": lambda x, axes: x.min(axes),
    "ReduceProd": lambda x, axes: x.prod(axes),
    "ReduceSum": lambda x, axes: x.sum(axes),
    "ReduceSumSquare": lambda x, axes: np.square(x).sum(axes),
}


def _register(name: str, reduction: _Reduce) -> None:
    @kernel(name)
    def run(x: Array, out: Array, *, axes: Sequence[int]) -> None:
        found = reduction(x, tuple(axes)) if axes else x
        np.copyto(out, np.asarray(found).reshape(out.shape), casting="unsafe")


for _name, _reduction in _REDUCTIONS.items():
    _register(_name, _reduction)


def _positions(x: Array, axis: int, last: int, choose: Callable[..., Array]) -> Array:
    if not last:
        return choose(x, axis=axis)
    return np.asarray(x.shape[axis] - 1 - choose(np.flip(x, axis), axis=axis))


@kernel("ArgMax")
def arg_max(x: Array, out: Array, *, axis: int, last: int) -> None:
    """The position of the largest element along ``axis``, the first or the ``last`` of several."""
    np.copyto(out, _positions(x, axis, last, np.argmax).reshape(out.shape))


@kernel("ArgMin")
def arg_min(x: Array, out: Array, *, axis: int, last: int) -> None:
    """The position of the least element along ``axis``, the first or the ``last`` of several."""
    np.copyto(out, _positions(x, axis, last, np.argmin).reshape(out.shape))


@kernel("CumSum")
def running_sum(x: Array, out: Array, *, axis: int, exclusive: int, reverse: int) -> None:
    """The sum of the elements up to each, of those before it where ``exclusive``, from the end where ``reverse``."""
    source = np.flip(x, axis) if reverse else x
    summed = np.cumsum(source, axis, dtype=x.dtype)
    if exclusive:
        summed = np.concatenate([np.zeros_like(summed.take([0], axis)), np.delete(summed, -1, axis)], axis)
    np.copyto(out, np.flip(summed, axis) if reverse else summed)


@kernel("TopK")
def top_k(x: Array, values: Array, indices: Array, *, axis: int, largest: int) -> None:
    """The first elements of the order along ``axis``, and their positions; equal ones in the order they have."""
    if largest:  # equal elements, which a stable sort keeps in order, then come out in order too
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis, kind="stable")
    chosen = order.take(range(values.shape[axis]), axis)
    np.copyto(indices, chosen)
    np.copyto(values, np.take_along_axis(x, chosen, axis))
