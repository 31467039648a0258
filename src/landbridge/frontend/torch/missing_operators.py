"""Operators that torch's exporter has no ONNX form of, as nodes that there are."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from onnxscript import opset18 as op

_INT32, _INT64 = 6, 7  # of TensorProto


def translations() -> dict[Any, Callable[..., Any]]:
    """For ``torch.onnx.export(custom_translation_table=)``."""
    import torch

    aten = torch.ops.aten
    return {
        aten.median.dim: _median,
        aten.median.default: _median_of_all,
        aten.kthvalue.default: _kth_value,
        aten.hypot.default: _hypot,
        aten.searchsorted.Tensor: _search_sorted,
        aten._cdist_forward.default: _distances,
    }


def _median(x: Any, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    """The lower one of two in the middle, and where it is: for what has no NaN."""
    middle = op.Div(op.Add(op.Gather(op.Shape(x), _ints(dim)), _ints(1)), _ints(2))
    return _last_of_smallest(x, middle, dim, keepdim)


def _median_of_all(x: Any) -> Any:
    return _median(op.Reshape(x, _ints(-1)), 0)[0]


def _kth_value(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """The ``k``-th smallest, counted from 1, and where it is."""
    return _last_of_smallest(x, _ints(k), dim, keepdim)


def _last_of_smallest(x: Any, count: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    values, indices = op.TopK(x, count, axis=dim, largest=0, sorted=1)
    at = _ints(-1) if keepdim else op.Constant(value_int=-1)
    return op.Gather(values, at, axis=dim), op.Gather(indices, at, axis=dim)


def _hypot(a: Any, b: Any) -> Any:
    """Of the larger side and what the other is of it, so that no square overflows."""
    a, b = op.Abs(a), op.Abs(b)
    most, least = op.Max(a, b), op.Min(a, b)
    one = op.CastLike(op.Constant(value_float=1.0), most)
    share = op.Div(least, op.Where(op.Equal(most, op.Sub(one, one)), one, most))
    return op.Mul(most, op.Sqrt(op.Add(one, op.Mul(share, share))))


def _search_sorted(
    boundaries: Any, x: Any, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Any = None
) -> Any:
    """How many ``boundaries`` [*B, N] are less than each ``x`` [*B, M], or no more where from the right."""
    if sorter is not None:
        boundaries = op.GatherElements(boundaries, sorter, axis=-1)
    rows, columns = op.Unsqueeze(boundaries, _ints(-2)), op.Unsqueeze(x, _ints(-1))
    before = op.LessOrEqual(rows, columns) if right or side == "right" else op.Less(rows, columns)
    count = op.ReduceSum(op.Cast(before, to=_INT64), _ints(-1), keepdims=0)
    return op.Cast(count, to=_INT32) if out_int32 else count


def _distances(a: Any, b: Any, p: float, compute_mode: int | None = None) -> Any:
    """Between rows of ``a`` [*B, P, M] and of ``b`` [*B, R, M]: [*B, P, R], of the ``p``-norm."""
    gaps = op.Abs(op.Sub(op.Unsqueeze(a, _ints(-2)), op.Unsqueeze(b, _ints(-3))))
    axis = _ints(-1)
    if p == 0:
        zero = op.CastLike(op.Constant(value_float=0.0), gaps)
        return op.ReduceSum(op.CastLike(op.Not(op.Equal(gaps, zero)), gaps), axis, keepdims=0)
    if p == 1:
        return op.ReduceSum(gaps, axis, keepdims=0)
    if p == 2:
        return op.Sqrt(op.ReduceSum(op.Mul(gaps, gaps), axis, keepdims=0))
    if p == inf:
        return op.ReduceMax(gaps, axis, keepdims=0)
    power = op.CastLike(op.Constant(value_float=float(p)), gaps)
    root = op.CastLike(op.Constant(value_float=1 / float(p)), gaps)
    return op.Pow(op.ReduceSum(op.Pow(gaps, power), axis, keepdims=0), root)


def _ints(*numbers: int) -> Any:
    return op.Constant(value_ints=list(numbers))
