"""Operators that torch's exporter has no ONNX form of, compared with torch itself."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from tests.frontend.torch.modules import BATCH, TIME, nn, torch

Results = tuple[Any, ...]


def ranks(x: Any, y: Any) -> Results:
    rows = x.sort(-1).values
    return (
        *(*x.median(-1), *x.median(0, keepdim=True), x.median()),
        *(*x.kthvalue(2), *x.kthvalue(1, 0, keepdim=True)),
        *(torch.searchsorted(rows, y), torch.searchsorted(rows, rows, right=True, out_int32=True)),
        *(torch.searchsorted(x, rows, side="right", sorter=x.argsort(-1)),),
    )


def distances(x: Any, y: Any) -> Results:
    """Legs whose squares are above all floats, and of no length."""
    norms = [torch.cdist(x[None], y[None], p) for p in (0.0, 1.0, 2.0, 3.0, inf)]
    return (torch.hypot(x * 1e20, x * 1e20 - 1e19), torch.hypot(x * 0, x * 0), *norms)


class Called(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, function: Callable[..., Results]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, y: Any) -> Results:
        return self.function(x, y)


@pytest.mark.parametrize("function", [ranks, distances])
def test_it_gives_what_torch_gives_for_sizes_that_come(function: Callable[..., Results]) -> None:
    torch.manual_seed(0)
    module = Called(function).eval()
    example = torch.randn(3, 8), torch.randn(3, 8)
    program = lb.compile(module, example, dynamic_shapes={"x": {0: BATCH, 1: TIME}, "y": {0: BATCH, 1: TIME}})
    session = lb.Session(program)
    for x, y in (example, (torch.randn(4, 11), torch.randn(4, 11))):
        for result, wanted in zip(session(x, y), module(x, y), strict=True):
            found = np.asarray(result)
            assert found.dtype == wanted.numpy().dtype
            assert found.shape == tuple(wanted.shape)
            np.testing.assert_allclose(found, wanted.numpy(), rtol=2e-6)  # sums of 11 float32 terms in another order
