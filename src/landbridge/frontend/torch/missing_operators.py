"""Translations of other operators that torch's exporter does not support."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxscript import opset18 as op

from landbridge.frontend.torch import distances, element_functions, embedding_bag, linear_algebra, ranks
from landbridge.frontend.torch.values import ints


def translations() -> dict[Any, Callable[..., Any]]:
    """Returns the translations, for ``torch.onnx.export(custom_translation_table=)``."""
    import torch

    families = (distances, element_functions, embedding_bag, linear_algebra, ranks)
    found = {key: created for family in families for key, created in family.translations().items()}
    aten = torch.ops.aten
    return found | {
        aten.masked_select.default: _masked,
        aten.adaptive_max_pool2d.default: _adaptive_max_pool,
    }


def _masked(x: Any, mask: Any) -> Any:
    """Returns the elements of ``x`` where ``mask`` is true, after both are broadcast."""
    x = op.Expand(x, op.Shape(mask))
    return op.Compress(x, op.Reshape(op.Expand(mask, op.Shape(x)), ints(-1)))


def _adaptive_max_pool(x: Any, output_size: Any) -> tuple[Any, Any]:
    """Returns the largest element of each cell of ``x`` [*B, H, W], and its index in H * W; cells may overlap and
    differ in size.
    """
    height, width = x.shape[-2:]
    if not (isinstance(height, int) and isinstance(width, int)):
        raise ValueError(f"adaptive_max_pool2d needs known extents of the picture, found {height} by {width}")
    rows, columns = _cells(height, output_size[0]), _cells(width, output_size[1])
    places = [
        [row * width + column for row in of_row for column in of_column] for of_row in rows for of_column in columns
    ]
    flat = [location for cell in places for location in cell]
    before = op.Shape(x, end=-2)
    pixels = op.Gather(op.Reshape(x, op.Concat(before, ints(-1), axis=0)), ints(*flat), axis=-1)
    cells = op.Reshape(pixels, op.Concat(before, ints(len(rows), len(columns), len(places[0])), axis=0))
    at = op.Add(
        op.ArgMax(cells, axis=-1, keepdims=0),
        op.Reshape(ints(*range(0, len(flat), len(places[0]))), ints(len(rows), len(columns))),
    )
    return op.ReduceMax(cells, ints(-1), keepdims=0), op.Gather(ints(*flat), at)


def _cells(extent: int, count: int) -> list[list[int]]:
    """Returns the indices of each cell, equally many for all: short cells repeat their last one."""
    ends = [(cell * extent // count, -(-(cell + 1) * extent // count)) for cell in range(count)]
    most = max(end - first for first, end in ends)
    return [[min(first + step, end - 1) for step in range(most)] for first, end in ends]
