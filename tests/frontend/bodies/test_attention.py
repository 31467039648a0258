"""Attention of ``com.microsoft``."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import landbridge as lb
from tests.frontend.bodies.against_onnxruntime import HEAD, check

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


def _attended(call: str, **inputs: np.ndarray) -> np.ndarray:
    kinds = {"f": "float", "i": "int32"}
    given = ", ".join(f"{kinds[x.dtype.kind]}[{', '.join(map(str, x.shape))}] {name}" for name, x in inputs.items())
    text = f"{HEAD} g ({given}) => (float[A, N, 12] y) {{ y = com.microsoft.MultiHeadAttention {call} }}"
    return np.asarray(lb.Session(lb.compile(parser.parse_model(text)))(inputs)["y"])


@pytest.mark.sample(2)
@pytest.mark.parametrize("mask", [np.array([5, 3], np.int32), np.array([[1] * 5, [1, 0, 1, 0, 0]], np.int32)])
@pytest.mark.parametrize("how", ["num_heads = 3", "num_heads = 3, unidirectional = 1, scale = 0.3"])
def test_of_packed_heads_is_that_of_their_parts(mask: np.ndarray, how: str) -> None:
    """onnxruntime's CPU kernel takes parts alone."""
    packed, bias, more = floats(2, 5, 3, 3, 4), floats(36), floats(1, 3, 5, 5)
    q, k, v = (packed[:, :, :, i].reshape(2, 5, 12) for i in range(3))
    rest = {"b": bias, "m": mask, "c": more}
    parts = _attended(f"<{how}> (q, k, v, b, m, c)", q=q, k=k, v=v, **rest)
    np.testing.assert_array_equal(_attended(f"<{how}> (q, , , b, m, c)", q=packed, **rest), parts)
    keys = np.ascontiguousarray(packed[:, :, :, 1:])
    np.testing.assert_array_equal(_attended(f"<{how}> (q, k, , b, m, c)", q=q, k=keys, **rest), parts)


def test_of_a_buffer_of_which_a_part_is_filled() -> None:
    """What is behind that part is kept, and no key."""
    check(
        """g (float[2, 3, 12] q, float[2, 3, 12] k, float[2, 3, 12] v, float[2, 3, 16, 4] pk, float[2, 3, 16, 4] pv,
            int32[1] l, float[2, 1, 12] one, float[36] b)
            => (float[2, 3, 12] y, float[2, 3, 16, 4] nk, float[2, 3, 16, 4] nv, float[2, 1, 12] z,
                float[2, 3, 16, 4] mk, float[2, 3, 16, 4] mv) {
            y, nk, nv = com.microsoft.MultiHeadAttention <num_heads = 3> (q, k, v, , , , pk, pv, l)
            z, mk, mv = com.microsoft.DecoderMaskedMultiHeadAttention <num_heads = 3, past_present_share_buffer = 1>
                (one, one, one, , , pk, pv, l, , , b) }""",
        {
            **{name: floats(2, 3, 12) for name in "qkv"},
            **{name: floats(2, 3, 16, 4) for name in ("pk", "pv")},
            "l": np.array([6], np.int32),
            "one": floats(2, 1, 12),
            "b": floats(36),
        },
    )


def test_rows_that_are_padded_before_are_causal_too() -> None:
    """Of a row's first steps no key is left: with the lowest number for all of them, they are weighted alike."""
    check(
        """g (float[2, N, 12] x, float[12, 36] w, float[36] b, int32[2, N] m, int32[4] ends)
            => (float[A, N, 12] y, float[A, N, 12] z, float[A, N, 12] u, float[A, 3, N, N] s) {
            y = com.microsoft.Attention <num_heads = 3, unidirectional = 1, mask_filter_value = -3.4028234663852886e38>
                (x, w, b, m)
            z = com.microsoft.Attention <num_heads = 3> (x, w, b, ends)
            u, , , s = com.microsoft.MultiHeadAttention <num_heads = 3, unidirectional = 1> (x, x, x, b, m) }""",
        {
            "x": floats(2, 5, 12),
            "w": floats(12, 36),
            "b": floats(36),
            "m": np.array([[0, 0, 1, 1, 1], [0] * 5], np.int32),
            "ends": np.array([5, 4, 0, 1], np.int32),
        },
    )


def test_values_may_be_wider_than_keys() -> None:
    check(
        """g (float[A, N, 12] x, float[12, 48] w, float[48] b) => (float[A, N, 24] y) {
            y = com.microsoft.Attention <num_heads = 3, qkv_hidden_sizes = [12, 12, 24]> (x, w, b) }""",
        {"x": floats(2, 5, 12), "w": floats(12, 48), "b": floats(48)},
    )
