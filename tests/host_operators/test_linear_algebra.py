"""Matrices that have no inverse beside those that have, and shapes as they are told ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from landbridge.host_operators.linear_algebra import cholesky, inverse, solve, solve_triangular
from landbridge.operators import REGISTRY, HostOperator, HostValue

A = np.random.default_rng(0).standard_normal((2, 1, 3, 3)) + 4 * np.eye(3)
B = np.random.default_rng(1).standard_normal((5, 3, 4))


def test_one_that_is_singular_is_nan_alone() -> None:
    both = np.stack([A[0, 0], np.zeros((3, 3))])
    found, info = inverse(both)
    np.testing.assert_allclose(found[0] @ both[0], np.eye(3), atol=1e-12)
    assert np.isnan(found[1]).all() and info.tolist() == [0, 1]
    assert cholesky(np.stack([both[0] @ both[0].T, -np.eye(3)]), upper=1)[1].tolist() == [0, 1]
    found, info = solve(both, B[:2], left=1)
    np.testing.assert_allclose(both[0] @ found[0], B[0], atol=1e-12)
    assert np.isnan(found[1]).all() and info.tolist() == [0, 1]


def test_half_a_matrix_is_read() -> None:
    square = A @ np.swapaxes(A, -1, -2)
    for upper, half in ((0, np.tril(square)), (1, np.triu(square))):
        found, _ = cholesky(half, upper=upper)
        low = np.swapaxes(found, -1, -2) if upper else found
        np.testing.assert_allclose(low @ np.swapaxes(low, -1, -2), square, rtol=1e-12)
    found = solve_triangular(A, B, upper=1, left=1, unit=1)
    triangle = np.triu(A, 1) + np.eye(3)
    np.testing.assert_allclose(triangle @ found, np.broadcast_to(B, (2, 5, 3, 4)), atol=1e-12)


CASES: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [
    ("Inverse", {}, (A,)),
    ("Cholesky", {"upper": 0}, (A @ np.swapaxes(A, -1, -2),)),
    ("Solve", {"left": 1}, (A, B)),
    ("Solve", {"left": 0}, (A, np.swapaxes(B, -1, -2))),
    ("SolveTriangular", {"left": 1, "upper": 0, "unit": 0}, (A, B)),
    *(("QR", {"mode": mode}, (x,)) for mode in ("reduced", "complete", "r") for x in (B, np.swapaxes(B, -1, -2))),
    *(("SVD", {"full": full}, (x,)) for full in (0, 1) for x in (B, np.swapaxes(B, -1, -2))),
    ("Eigh", {"upper": 0}, (A,)),
    ("LogDeterminant", {}, (A,)),
]


@pytest.mark.parametrize(("name", "attributes", "given"), CASES)
def test_results_are_as_reported(name: str, attributes: dict[str, Any], given: tuple[Any, ...]) -> None:
    operator = REGISTRY.find(HostOperator, "landbridge", name, 1)
    assert operator is not None and operator.results is not None
    for dtype in (np.float32, np.float64, np.float16):
        arrays = [np.ascontiguousarray(x, dtype) for x in given]
        reported = operator.results(*(HostValue(x.shape, str(x.dtype)) for x in arrays), **attributes)
        found = operator.bound(attributes)(*arrays)
        assert [(tuple(shape), dtype) for shape, dtype in reported] == [(x.shape, str(x.dtype)) for x in found]
