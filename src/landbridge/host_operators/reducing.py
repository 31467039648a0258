"""Reductions and running sums along axes that data decide.

The definitions: https://onnx.ai/onnx/operators
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from landbridge.host_operators.reshaping import count_of, open_shape, whole
from landbridge.operators import Array, HostValue, Results, host_operator

#: A reduction of an array along axes, with ``keepdims``.
_Reduction = Callable[..., Array]


def _log_sum_exp(x: Array, axis: Sequence[int], keepdims: bool) -> Array:
    most = x.max(axis, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0)
    total = np.log(np.exp(x - most).sum(axis, keepdims=True)) + most
    return np.asarray(total if keepdims else np.squeeze(total, tuple(axis)))


#: Of each operator the function, and the opset from which its axes are an input.
_REDUCTIONS: dict[str, tuple[int, _Reduction]] = {
    "ReduceSum": (13, np.sum),
    "ReduceMean": (18, np.mean),
    "ReduceProd": (18, np.prod),
    "ReduceMax": (18, np.max),
    "ReduceMin": (18, np.min),
    "ReduceL1": (18, lambda x, **where: np.abs(x).sum(**where)),
    "ReduceL2": (18, lambda x, **where: np.sqrt(np.square(x).sum(**where))),
    "ReduceSumSquare": (18, lambda x, **where: np.square(x).sum(**where)),
    "ReduceLogSum": (18, lambda x, **where: np.log(x.sum(**where))),
    "ReduceLogSumExp": (18, _log_sum_exp),
}


def _results(x: HostValue, axes: HostValue, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Results:
    rank = len(x.shape)
    count = count_of(axes) or (0 if noop_with_empty_axes else rank)
    return [open_shape(rank if keepdims else rank - count, x.dtype)]


def _registered(op_type: str, since: int, function: _Reduction) -> None:
    def reduced(x: Array, axes: Array, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Array:
        """Applies ``function`` to the elements along ``axes``, in float64 where they are floats."""
        every = axes.size == 0 and not noop_with_empty_axes
        along = tuple(range(x.ndim)) if every else tuple({axis % x.ndim for axis in whole(axes)})
        wide = x.astype(np.float64) if x.dtype.kind not in "iub" else x
        with np.errstate(all="ignore"):
            return np.asarray(function(wide, axis=along, keepdims=bool(keepdims))).astype(x.dtype)

    reduced.__qualname__ = reduced.__name__ = op_type
    host_operator("", op_type, since=since, results=_results)(reduced)


for _name, (_since, _function) in _REDUCTIONS.items():
    _registered(_name, _since, _function)


def _along(function: Callable[..., Array], x: Array, axis: Array, exclusive: int, reverse: int) -> Array:
    (at,) = whole(axis)
    flipped = np.flip(x, at) if reverse else x
    found = function(flipped, at, dtype=x.dtype)
    if exclusive:
        found = np.roll(found, 1, at)
        first = [slice(None)] * x.ndim
        first[at] = slice(0, 1)
        found[tuple(first)] = 1 if function is np.cumprod else 0
    return np.ascontiguousarray(np.flip(found, at)) if reverse else found


@host_operator("", "CumSum", since=11, results=lambda x, *_, **__: [(x.shape, x.dtype)])
def cum_sum(x: Array, axis: Array, *, exclusive: int = 0, reverse: int = 0) -> Array:
    """Computes sums of the elements up to each one along ``axis``."""
    return _along(np.cumsum, x, axis, exclusive, reverse)


@host_operator("", "CumProd", since=26, results=lambda x, *_, **__: [(x.shape, x.dtype)])
def cum_prod(x: Array, axis: Array, *, exclusive: int = 0, reverse: int = 0) -> Array:
    """Computes products of the elements up to each one along ``axis``."""
    return _along(np.cumprod, x, axis, exclusive, reverse)
