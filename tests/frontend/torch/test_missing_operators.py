"""Operators that torch's exporter has no ONNX form of, compared with torch itself."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from tests.frontend.torch.modules import BATCH, TIME, nn, torch

pytestmark = pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
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


def orders(x: Any, y: Any) -> Results:
    """Of what has NaNs, and of numbers of which many are equal."""
    holes, steps = torch.where(x > 0.5, torch.nan, x), (2 * x).round()
    equal = steps.sort(dim=1, stable=True, descending=True)
    return (
        *(*holes.nanmedian(-1), *holes.nanmedian(0, keepdim=True), holes.nanmedian()),
        *(torch.where(x > 2.0, torch.nan, x).median(-1).values, holes.median(), steps.int().nanmedian()),
        *(*steps.mode(-1), steps.int().mode(0, keepdim=True).values),
        *(*holes.cummax(1), *steps.cummin(0), *steps.int().cummax(-1)),
        *(y.cumprod(1), steps.int().cumprod(0), y.cumprod(1, dtype=torch.float64)),
        *(x.argsort(1), x.argsort(0, descending=True), *equal, x.msort()),
    )


def functions(x: Any, y: Any) -> Results:
    unit = y.tanh()
    return (
        *(unit.erfinv(), unit.double().erfinv(), torch.tensor([1.0, -1.0, 0.0, 2.0]).erfinv() + 0 * x[0, 0]),
        *(torch.lgamma(4 * x), torch.digamma(4 * x + 0.01), torch.lgamma(x.double() * 50)),
        *(torch.signbit(x * 0), torch.copysign(y, -x * 0), torch.signbit((9 * x).int())),
        nn.functional.rrelu(x, 0.1, 0.4),
    )


def algebra(x: Any, y: Any) -> Results:
    """Matrices [N, 3, 3] that are far from singular; factors are multiplied, as their signs are free."""
    a = x[:, :4, None] * y[:, None, :4] + 5 * torch.eye(4)
    square, column = a @ a.mT, y[:, :4]
    (q, r), (u, s, v), (w, e) = torch.linalg.qr(a), torch.linalg.svd(a, full_matrices=False), torch.linalg.eigh(square)
    triangle = torch.linalg.solve_triangular(a, a.mT, upper=False, unitriangular=True)
    return (
        *(torch.linalg.inv(a), a.inverse(), torch.linalg.inv_ex(a * 0).info),
        *(torch.linalg.solve(a, column), torch.linalg.solve(a, a.mT, left=False)),
        *(torch.linalg.cholesky(square), torch.linalg.cholesky(square, upper=True)),
        *(q @ r, (u * s[:, None]) @ v, (e * w[:, None]) @ e.mT, s, w, triangle),
        *(*torch.linalg.slogdet(a), torch.linalg.det(a)),
    )


#: Beside zeros of lgamma, and of what a matrix is computed of: some roundings of numbers up to 100.
TOLERANCES = {functions: 2e-6, algebra: 5e-5}


class Called(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, function: Callable[..., Results]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, y: Any) -> Results:
        return self.function(x, y)


@pytest.mark.parametrize("function", [ranks, distances, orders, functions, algebra])
def test_it_gives_what_torch_gives_for_sizes_that_come(function: Callable[..., Results]) -> None:
    torch.manual_seed(0)
    module = Called(function).eval()
    example = torch.randn(3, 8), torch.randn(3, 8)
    axes = {0: BATCH} if function is algebra else {0: BATCH, 1: TIME}
    session = lb.Session(lb.compile(module, example, dynamic_shapes={"x": axes, "y": axes}))
    other = (4, 8 if function is algebra else 11)
    for x, y in (example, (torch.randn(other), torch.randn(other))):
        for result, wanted in zip(session(x, y), module(x, y), strict=True):
            found = np.asarray(result)
            assert found.dtype == wanted.numpy().dtype
            assert found.shape == tuple(wanted.shape)
            # Sums of 11 float32 terms in another order; near zeros of lgamma and in matrices, of terms that cancel.
            np.testing.assert_allclose(found, wanted.numpy(), rtol=2e-6, atol=TOLERANCES.get(function, 0))


def test_what_is_selected_and_pooled() -> None:
    def function(x: Any, y: Any) -> Results:
        picture = x.view(1, 2, 7, 5)
        pooled = nn.functional.adaptive_max_pool2d(picture, (3, 4), return_indices=True)
        return (*pooled, nn.functional.pdist(y), nn.functional.pdist(y, 1.0), x.masked_select(x > 0))

    torch.manual_seed(1)
    module, inputs = Called(function).eval(), (torch.randn(7, 10), torch.randn(4, 6))
    session = lb.Session(lb.compile(module, inputs))
    for x in (inputs[0], torch.randn(7, 10)):
        for result, wanted in zip(session(x, inputs[1]), module(x, inputs[1]), strict=True):
            np.testing.assert_allclose(np.asarray(result), wanted.numpy(), rtol=2e-6)
