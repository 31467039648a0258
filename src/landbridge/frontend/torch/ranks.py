"""Translations of torch operators on the order of elements along an axis: medians, running extremes, the most frequent
one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxscript import opset18 as op

from landbridge.frontend.torch.custom_operators import custom_operator
from landbridge.frontend.torch.values import BOOL, INT32, INT64, constant_like, ints, is_float

_WITH_INDICES = ("T", "tensor(int64)")


def translations() -> dict[Any, Callable[..., Any]]:
    """Returns the translations, for ``torch.onnx.export(custom_translation_table=)``."""
    import torch

    aten = torch.ops.aten
    return {
        aten.median.dim: _median,
        aten.median.default: lambda x: _median(_flat(x), 0, floats=is_float(x))[0],
        aten.nanmedian.dim: _nan_median,
        aten.nanmedian.default: lambda x: _nan_median(_flat(x), 0, floats=is_float(x))[0],
        aten.kthvalue.default: _kth_value,
        aten.sort.stable: _sorted,
        aten.argsort.stable: lambda x, *, stable, dim=-1, descending=False: _sorted(
            x, stable=stable, dim=dim, descending=descending
        )[1],
        aten.mode.default: _mode,
        aten.cummax.default: lambda x, dim: custom_operator("CumMax", 1, _WITH_INDICES, axis=0)(x, axis=dim),
        aten.cummin.default: lambda x, dim: custom_operator("CumMin", 1, _WITH_INDICES, axis=0)(x, axis=dim),
        aten.cumprod.default: _running_product,
        aten.searchsorted.Tensor: _search_sorted,
    }


def _flat(x: Any) -> Any:
    return op.Reshape(x, ints(-1))


def _median(x: Any, dim: int, keepdim: bool = False, *, floats: bool | None = None) -> tuple[Any, Any]:
    """Returns the lower of two middle elements, or the first NaN, and its index.

    ``floats``: whether elements are floats, if ``x`` does not know its dtype.
    """
    middle = op.Div(op.Add(op.Gather(op.Shape(x), ints(dim)), ints(1)), ints(2))
    if not (is_float(x) if floats is None else floats):
        return _last_of_smallest(x, middle, dim, keepdim)
    bad = op.IsNaN(x)
    values, indices = _last_of_smallest(_above_all(x, bad), middle, dim, keepdim)
    marks = op.Cast(bad, to=INT64)
    found = op.Cast(op.ReduceMax(marks, ints(dim), keepdims=int(keepdim)), to=BOOL)
    first = op.ArgMax(marks, axis=dim, keepdims=int(keepdim))
    return op.Where(found, constant_like(float("nan"), x), values), op.Where(found, first, indices)


def _nan_median(x: Any, dim: int, keepdim: bool = False, *, floats: bool | None = None) -> tuple[Any, Any]:
    """Returns the median of the elements that are not NaN, or NaN if there is none, and its index."""
    if not (is_float(x) if floats is None else floats):
        return _median(x, dim, keepdim, floats=False)
    bad = op.IsNaN(x)
    values, indices = op.TopK(_above_all(x, bad), op.Gather(op.Shape(x), ints(dim)), axis=dim, largest=0, sorted=1)
    count = op.ReduceSum(op.Cast(op.Not(bad), to=INT64), ints(dim), keepdims=1)
    at = op.Div(op.Max(op.Sub(count, ints(1)), ints(0)), ints(2))
    values = op.Where(op.Equal(count, ints(0)), constant_like(float("nan"), x), op.GatherElements(values, at, axis=dim))
    indices = op.GatherElements(indices, at, axis=dim)
    return (values, indices) if keepdim else (op.Squeeze(values, ints(dim)), op.Squeeze(indices, ints(dim)))


def _above_all(x: Any, bad: Any) -> Any:
    return op.Where(bad, constant_like(float("inf"), x), x)


def _sorted(x: Any, *, stable: bool | None, dim: int = -1, descending: bool = False) -> tuple[Any, Any]:
    """Returns sorted values and their indices; equal elements stay in order, as in TopK."""
    if len(x.shape) == 0:
        return op.Identity(x), op.Constant(value_int=0)
    count = op.Gather(op.Shape(x), ints(dim))
    return op.TopK(x, count, axis=dim, largest=int(descending), sorted=1)  # type: ignore[no-any-return]


def _kth_value(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """Returns the ``k``-th smallest element, counted from 1, and its index."""
    return _last_of_smallest(x, ints(k), dim, keepdim)


def _last_of_smallest(x: Any, count: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    values, indices = op.TopK(x, count, axis=dim, largest=0, sorted=1)
    at = ints(-1) if keepdim else op.Constant(value_int=-1)
    return op.Gather(values, at, axis=dim), op.Gather(indices, at, axis=dim)


def _mode(x: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    values, indices = custom_operator("Mode", 1, _WITH_INDICES, axis=0)(x, axis=dim)
    return (values, indices) if keepdim else (op.Squeeze(values, ints(dim)), op.Squeeze(indices, ints(dim)))


def _running_product(x: Any, dim: int, dtype: int = -1) -> Any:
    """Returns running products; those of integers are int64, as in torch."""
    wide = x if is_float(x) else op.Cast(x, to=INT64)
    return custom_operator("CumProd", 1, axis=0)(wide if dtype == -1 else op.Cast(x, to=dtype), axis=dim)


def _search_sorted(
    boundaries: Any, x: Any, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Any = None
) -> Any:
    """Returns how many ``boundaries`` [*B, N] are less than each ``x`` [*B, M], or at most equal if from the right."""
    if sorter is not None:
        boundaries = op.GatherElements(boundaries, sorter, axis=-1)
    rows, columns = op.Unsqueeze(boundaries, ints(-2)), op.Unsqueeze(x, ints(-1))
    before = op.LessOrEqual(rows, columns) if right or side == "right" else op.Less(rows, columns)
    count = op.ReduceSum(op.Cast(before, to=INT64), ints(-1), keepdims=0)
    return op.Cast(count, to=INT32) if out_int32 else count
