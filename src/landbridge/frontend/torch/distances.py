"""Translations of norms and distances that torch's exporter does not support."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from onnxscript import opset18 as op

from landbridge.frontend.torch.values import constant_like, ints


def translations() -> dict[Any, Callable[..., Any]]:
    """Returns the translations, for ``torch.onnx.export(custom_translation_table=)``."""
    import torch

    aten = torch.ops.aten
    return {
        aten.hypot.default: _hypot,
        aten._cdist_forward.default: _distances,
        aten._pdist_forward.default: _distances_of_pairs,
    }


def _hypot(a: Any, b: Any) -> Any:
    """Returns the hypotenuse, computed from the larger side and the ratio to it, so that no square overflows."""
    a, b = op.Abs(a), op.Abs(b)
    most, least = op.Max(a, b), op.Min(a, b)
    one = constant_like(1.0, most)
    share = op.Div(least, op.Where(op.Equal(most, op.Sub(one, one)), one, most))
    return op.Mul(most, op.Sqrt(op.Add(one, op.Mul(share, share))))


def _distances(a: Any, b: Any, p: float, compute_mode: int | None = None) -> Any:
    """Returns the ``p``-norm distances between rows of ``a`` [*B, P, M] and of ``b`` [*B, R, M], as [*B, P, R]."""
    return _norms(op.Sub(op.Unsqueeze(a, ints(-2)), op.Unsqueeze(b, ints(-3))), p)


def _distances_of_pairs(x: Any, p: float = 2.0) -> Any:
    """Returns the distances between rows of ``x`` [N, M], each pair once, ordered by the first row: [N * (N - 1)
    / 2].
    """
    count = x.shape[0]
    if not isinstance(count, int):
        raise ValueError(f"pdist needs a known number of rows, and axis 0 is open: {count}")
    pairs = [(first, second) for first in range(count) for second in range(first + 1, count)]
    firsts, seconds = ([pair[number] for pair in pairs] for number in (0, 1))
    return _norms(op.Sub(op.Gather(x, ints(*firsts)), op.Gather(x, ints(*seconds))), p)


def _norms(gaps: Any, p: float) -> Any:
    """Returns the ``p``-norm along the last axis."""
    gaps, axis = op.Abs(gaps), ints(-1)
    if p == 0:
        different = op.Not(op.Equal(gaps, constant_like(0.0, gaps)))
        return op.ReduceSum(op.CastLike(different, gaps), axis, keepdims=0)
    if p == 1:
        return op.ReduceSum(gaps, axis, keepdims=0)
    if p == 2:
        return op.Sqrt(op.ReduceSum(op.Mul(gaps, gaps), axis, keepdims=0))
    if p == inf:
        return op.ReduceMax(gaps, axis, keepdims=0)
    power, root = constant_like(float(p), gaps), constant_like(1 / float(p), gaps)
    return op.Pow(op.ReduceSum(op.Pow(gaps, power), axis, keepdims=0), root)
