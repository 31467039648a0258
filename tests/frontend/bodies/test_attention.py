"""Attention of ``com.microsoft``."""

from __future__ import annotations

import numpy as np

from tests.frontend.bodies.beside_onnxruntime import check

R = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return R.standard_normal(shape).astype(np.float32)


def test_of_packed_weights() -> None:
    keep = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32)
    check(
        """g (float[A, N, 12] x, float[12, 36] w, float[36] b, int32[A, N] m, int32[A] ends, float[2, A, 3, 4, 4] past)
            => (float[A, N, 12] p, float[A, N, 12] q, float[A, N, 12] r, float[A, N, 12] s, float[2, A, 3, T, 4] now) {
            p = com.microsoft.Attention <num_heads = 3> (x, w, b, m)
            q = com.microsoft.Attention <num_heads = 3, unidirectional = 1> (x, w, b)
            r = com.microsoft.Attention <num_heads = 3> (x, w, b, ends)
            s, now = com.microsoft.Attention <num_heads = 3, unidirectional = 1, scale = 0.4> (x, w, b, , past) }""",
        {
            "x": floats(2, 5, 12),
            "w": floats(12, 36) * np.float32(0.3),
            "b": floats(36),
            "m": keep,
            "ends": np.array([5, 3], np.int32),
            "past": floats(2, 2, 3, 4, 4),
        },
    )


def test_of_many_heads() -> None:
    check(
        """g (float[A, N, 12] q, float[A, M, 12] k, float[A, M, 12] v, float[36] b, float[1, 3, N, M] more,
            int32[A, M] m, float[A, 3, 4, 4] pk, float[A, 3, 4, 4] pv)
            => (float[A, N, 12] x, float[A, N, 12] y, float[A, N, 12] z, float[A, 3, T, 4] nk, float[A, 3, T, 4] nv) {
            x = com.microsoft.MultiHeadAttention <num_heads = 3> (q, k, v, b, m)
            y = com.microsoft.MultiHeadAttention <num_heads = 3> (q, k, v, , , more)
            z, nk, nv = com.microsoft.MultiHeadAttention <num_heads = 3> (q, k, v, b, , , pk, pv) }""",
        {
            "q": floats(2, 6, 12),
            "k": floats(2, 6, 12),
            "v": floats(2, 6, 12),
            "b": floats(36),
            "more": floats(1, 3, 6, 6),
            "m": np.array([[1] * 6, [1, 1, 1, 1, 0, 0]], np.int32),
            "pk": floats(2, 3, 4, 4),
            "pv": floats(2, 3, 4, 4),
        },
    )


def test_rotary_positions() -> None:
    check(
        """g (float[A, N, 24] x, int64[A, N] p, int64[1] o, float[16, 4] c, float[16, 4] s, float[A, 3, N, 8] h)
            => (float[A, N, 24] y, float[A, N, 24] z, float[A, 3, N, 8] w) {
            y = com.microsoft.RotaryEmbedding (x, p, c, s)
            z = com.microsoft.RotaryEmbedding <interleaved = 1> (x, o, c, s)
            w = com.microsoft.RotaryEmbedding (h, p, c, s) }""",
        {
            "x": floats(2, 5, 24),
            "p": R.integers(0, 16, (2, 5)),
            "o": np.array([3]),
            "c": floats(16, 4),
            "s": floats(16, 4),
            "h": floats(2, 3, 5, 8),
        },
    )


def test_of_quantized_weights() -> None:
    check(
        """g (uint8[A, N, 12] x, uint8[12, 36] w, float[36] b, float s, float t, uint8 z, uint8 v)
            => (float[A, N, 12] y) {
            y = com.microsoft.QAttention <num_heads = 3> (x, w, b, s, t, , z, v) }""",
        {
            "x": R.integers(0, 256, (2, 5, 12)).astype(np.uint8),
            "w": R.integers(0, 256, (12, 36)).astype(np.uint8),
            "b": floats(36),
            "s": np.float32(0.02),
            "t": np.float32(0.01),
            "z": np.uint8(120),
            "v": np.uint8(128),
        },
    )
