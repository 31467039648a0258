"""Operators of ``com.microsoft`` that move or measure."""

from __future__ import annotations

import numpy as np
from onnx import parser

import landbridge as lb
from tests.frontend.bodies.against_onnxruntime import HEAD, check

R = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return R.standard_normal(shape).astype(np.float32)


def test_elements_are_moved() -> None:
    check(
        """g (float[4, 6] x, float[1, 2, 5, 5] i, float[1, 3, 4, 2] at, int64[3, 2] n)
            => (float[4, 6] p, float[5, 7] q, float[1, 2, 3, 4] r, float[4, 1, 6] s, float[3] t)
            <int64[4] pads = {0, 1, 1, 0}, float[1] fill = {2.5}, int32 axis = {1}> {
            p = com.microsoft.Trilu <upper = 0> (x)
            q = com.microsoft.Pad (x, pads, fill)
            r = com.microsoft.GridSample <align_corners = 1> (i, at)
            s = com.microsoft.ExpandDims (x, axis)
            t = com.microsoft.GatherND (x, n) }""",
        {"x": floats(4, 6), "i": floats(1, 2, 5, 5), "at": floats(1, 3, 4, 2), "n": np.array([[0, 1], [3, 5], [2, 2]])},
    )


def test_distances() -> None:
    check(
        """g (float[N, 5] a, float[7, 5] b) => (float[N, 7] p, float[N, 7] q) {
            p = com.microsoft.CDist <metric = "euclidean"> (a, b)
            q = com.microsoft.CDist <metric = "sqeuclidean"> (a, b) }""",
        {"a": floats(4, 5), "b": floats(7, 5)},
    )


def test_arithmetic_progressions() -> None:
    check(
        """g (float[3] x) => (float[N] p, int64[M] q, float[3] y)
            <float start = {1.5}, float limit = {4.0}, float delta = {0.5}, int64 a = {10}, int64 b = {1},
            int64 c = {-4}> {
            p = com.microsoft.Range (start, limit, delta)
            q = com.microsoft.Range (a, b, c)
            y = Neg (x) }""",
        {"x": floats(3)},
    )


def test_distinct_elements() -> None:
    check(
        "g (float[9] x) => (float[N] y, int64[9] i, int64[N] c) { y, i, c = com.microsoft.Unique (x) }",
        {"x": np.array([3, 1, 3, 2, 1, 5, 5, 5, 0], np.float32)},
    )


def test_rows_of_an_embedding() -> None:
    """onnxruntime has the schema of TorchEmbedding alone: torch.nn.functional.embedding takes rows of the table."""
    model = parser.parse_model(
        f"{HEAD} g (float[7, 4] w, int64[5] i) => (float[5, 4] y) {{ y = com.microsoft.TorchEmbedding (w, i) }}"
    )
    table, at = floats(7, 4), np.array([0, 3, 6, 6, 2])
    (found,) = lb.Session(lb.compile(model))(table, at)
    np.testing.assert_array_equal(found, table[at])
