"""Translates EmbeddingBag to a Gather and a scatter; torch's own translation is a loop over bags that fills a
sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxscript import opset18 as op  # ScatterElements has min and max from 18 on

from landbridge.frontend.torch.values import BOOL, INT64, ints

#: The numbers of torch's modes.
_SUM, _MEAN, _MAX = range(3)


def translations() -> dict[Any, Callable[..., Any]]:
    """Returns the translations, for ``torch.onnx.export(custom_translation_table=)``."""
    import torch

    return {
        torch.ops.aten.embedding_bag.padding_idx: _all_outputs,
        torch.ops.aten.embedding_bag.default: _all_outputs,
        torch.ops.aten._embedding_bag.default: _inner_form,
        torch.ops.aten._embedding_bag_forward_only.default: _inner_form,
    }


def _all_outputs(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Returns the result, and the result again for each output that only the backward pass reads.

    ``scale_grad_by_freq`` and ``sparse`` only matter to the backward pass too.
    """
    result = _embedding_bag(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx)
    return result, result, result, result


def _inner_form(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """Returns the outputs of ``_all_outputs``; here -1 means no padding."""
    padding = None if padding_idx < 0 else padding_idx
    return _all_outputs(weight, indices, offsets, False, mode, False, per_sample_weights, include_last_offset, padding)


def _embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    mode: int,
    per_sample_weights: Any,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Any:
    """Returns the bags [B, D] of ``weight`` [V, D], ``indices`` [N] and ``offsets`` [B], the first indices of bags;
    zeros for an empty bag.

    With ``include_last_offset`` there are B + 1 offsets. A negative ``padding_idx`` counts from the end.
    """
    rows = op.Gather(weight, indices)
    if per_sample_weights is not None:
        rows = op.Mul(rows, op.Unsqueeze(per_sample_weights, ints(1)))
    # An index belongs to the last bag that begins at or before it.
    location = op.Unsqueeze(op.Range(_int(0), op.Squeeze(op.Shape(indices)), _int(1)), ints(1))
    begun = op.Cast(op.LessOrEqual(op.Cast(offsets, to=INT64), location), to=INT64)
    bag = op.Sub(op.ReduceSum(begun, ints(1), keepdims=1), ints(1))
    counted = op.CastLike(op.GreaterOrEqual(bag, ints(0)), weight)
    if padding_idx is not None:
        number = op.Cast(op.Unsqueeze(indices, ints(1)), to=INT64)
        padding = _int(padding_idx) if padding_idx >= 0 else op.Add(_rows_of(weight), ints(padding_idx))
        counted = op.CastLike(op.Not(op.Equal(number, padding)), weight)
    bags = op.Concat(op.Shape(offsets), op.Shape(weight, start=1), axis=0)
    zeros = op.CastLike(op.Expand(_float(0), bags), weight)
    places = op.Expand(bag, op.Shape(rows))
    ones = op.ScatterElements(op.Slice(zeros, ints(0), ints(1), ints(1)), bag, counted, axis=0, reduction="add")
    if mode == _MAX:
        least = op.CastLike(_float(float("-inf")), weight)
        retained = op.Where(op.Cast(counted, to=BOOL), rows, least)
        most = op.ScatterElements(op.Add(zeros, least), places, retained, axis=0, reduction="max")
        result = op.Where(op.Greater(ones, op.CastLike(_float(0), weight)), most, zeros)
    else:
        if padding_idx is not None:
            rows = op.Where(op.Cast(counted, to=BOOL), rows, op.CastLike(_float(0), rows))
        result = op.ScatterElements(zeros, places, rows, axis=0, reduction="add")
        if mode == _MEAN:
            result = op.Div(result, op.Max(ones, op.CastLike(_float(1), weight)))
    # The last offset is the end of the last bag; no bag begins there.
    return op.Slice(result, ints(0), ints(-1), ints(0)) if include_last_offset else result


def _rows_of(weight: Any) -> Any:
    return op.Shape(weight, start=0, end=1)


def _int(number: int) -> Any:
    return op.Constant(value_int=number)


def _float(number: float) -> Any:
    return op.Constant(value_float=number)
