"""Normalizations of onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.bodies.against_onnxruntime import check

R = np.random.default_rng(0)
X, S = (R.standard_normal((2, 5, 16)).astype(np.float32) for _ in range(2))
G, B, C = (R.standard_normal(16).astype(np.float32) for _ in range(3))


def test_skips_are_added_before() -> None:
    check(
        """g (float[A, N, 16] x, float[A, N, 16] s, float[16] g, float[16] b, float[16] c)
            => (float[A, N, 16] p, float[A, N, 16] q, float[A, N, 16] total, float[A, N, 16] r, float[A, N, 16] sums) {
            p = com.microsoft.SkipLayerNormalization (x, s, g)
            q, , , total = com.microsoft.SkipLayerNormalization <epsilon = 0.00001> (x, s, g, b, c)
            r, , , sums = com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 0.00001> (x, s, g, c) }""",
        {"x": X, "s": S, "g": G, "b": B, "c": C},
    )


def test_an_embedding_ends_in_one() -> None:
    words, places, kinds = (R.standard_normal((n, 16)).astype(np.float32) for n in (20, 9, 2))
    ids, segments = R.integers(0, 20, (2, 5)).astype(np.int32), R.integers(0, 2, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    check(
        """g (int32[A, N] i, int32[A, N] k, float[20, 16] w, float[9, 16] p, float[2, 16] s, float[16] g, float[16] b,
            int32[A, N] m) => (float[A, N, 16] y, int32[A] ends, float[A, N, 16] u, int32[A] also,
            float[A, N, 16] z, int32[A] none) {
            y, ends = com.microsoft.EmbedLayerNormalization <mask_index_type = 1> (i, k, w, p, s, g, b, m)
            u, also = com.microsoft.EmbedLayerNormalization (i, k, w, p, s, g, b, m)
            z, none = com.microsoft.EmbedLayerNormalization (i, , w, p, , g, b) }""",
        {"i": ids, "k": segments, "w": words, "p": places, "s": kinds, "g": G, "b": B, "m": mask},
    )


@pytest.mark.parametrize("opset", [11, 21])
def test_those_that_onnx_had_not_yet(opset: int) -> None:
    check(
        """g (float[A, N, 16] x, float[16] g, float[16] b) => (float[A, N, 16] y, float[A, N, 16] z) {
            y = LayerNormalization <axis = -1, epsilon = 0.00001> (x, g, b)
            z = SimplifiedLayerNormalization <axis = -1, epsilon = 0.00001> (x, g) }""",
        {"x": X, "g": G, "b": B},
        opset=opset,
    )
