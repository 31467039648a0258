"""What optimizers make for kernels of GPUs: onnxruntime has none for CPUs, so numpy computes what is expected."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import parser

import landbridge as lb
from landbridge.errors import FallbackWarning
from tests.frontend.bodies.against_onnxruntime import HEAD, check

R = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return R.standard_normal(shape).astype(np.float32)


def ran(call: str, outputs: int = 1, **inputs: np.ndarray) -> list[np.ndarray]:
    kinds = {"float32": "float", "int64": "int64"}
    given = ", ".join(f"{kinds[x.dtype.name]}[{', '.join(map(str, x.shape))}] {name}" for name, x in inputs.items())
    made = [f"y{i}" for i in range(outputs)]
    text = f"{HEAD} g ({given}) => ({', '.join(f'float {name}' for name in made)}) {{ {', '.join(made)} = {call} }}"
    model = parser.parse_model(text)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    found = lb.Session(lb.compile(model))(inputs)
    return [np.asarray(found[name]) for name in made]


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def grouped(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, groups: int, epsilon: float) -> np.ndarray:
    """Of images with their channels last."""
    parts = x.astype(np.float64).reshape(x.shape[0], -1, groups, x.shape[3] // groups)
    off = parts - parts.mean((1, 3), keepdims=True)
    return (off / np.sqrt((off**2).mean((1, 3), keepdims=True) + epsilon)).reshape(x.shape) * gamma + beta


@pytest.mark.parametrize("last", [0, 1])
def test_group_normalization(last: int) -> None:
    x, gamma, beta, bias = floats(2, 5, 4, 6), floats(6), floats(6), floats(6)
    order = (0, 1, 2, 3) if last else (0, 3, 1, 2)
    given = np.ascontiguousarray(x.transpose(order))
    how = f"groups = 3, epsilon = 0.001, channels_last = {last}"
    plain = grouped(x, gamma, beta, 3, 1e-3)
    (y,) = ran(f"com.microsoft.GroupNorm <{how}, activation = 1> (x, g, b)", x=given, g=gamma, b=beta)
    np.testing.assert_allclose(y, (plain / (1 + np.exp(-plain))).transpose(order), rtol=2e-5, atol=2e-5)
    for skip in (floats(2, 5, 4, 6), floats(2, 6)):
        total = x + (skip if skip.ndim == 4 else skip[:, None, None]) + bias
        s = np.ascontiguousarray(skip.transpose(order)) if skip.ndim == 4 else skip
        call = f"com.microsoft.SkipGroupNorm <{how}, activation = 0> (x, g, b, s, c)"
        y, sums = ran(call, 2, x=given, g=gamma, b=beta, s=s, c=bias)
        np.testing.assert_allclose(sums, total.transpose(order), rtol=1e-6, atol=1e-6)
        expected = grouped(total, gamma, beta, 3, 1e-3).transpose(order)
        np.testing.assert_allclose(y, expected, rtol=2e-5, atol=2e-5)


def test_additions_and_activations() -> None:
    x, c, skip, w = floats(2, 5, 8), floats(8), floats(2, 5, 8), floats(8, 8)
    (y,) = ran("com.microsoft.BiasAdd (x, c, s)", x=x, c=c, s=skip)
    np.testing.assert_allclose(y, x + c + skip, rtol=1e-6, atol=1e-6)
    (y,) = ran("com.microsoft.BiasSplitGelu (x, c)", x=x, c=c)
    np.testing.assert_allclose(y, (x + c)[..., :4] * gelu((x + c)[..., 4:]), rtol=1e-5, atol=1e-5)
    (y,) = ran("com.microsoft.GemmFastGelu (x, w, c)", x=x, w=w, c=c)
    s = x @ w + c
    tanh = s * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (s + 0.044715 * s**3)))
    np.testing.assert_allclose(y, tanh, rtol=1e-5, atol=1e-5)
    for axes in ((2,), (1, 2)):
        (y,) = ran(f"com.microsoft.BiasSoftmax <axis = {axes[0]}, is_inner_broadcast = 1> (x, s)", x=x, s=skip)
        power = np.exp(x + skip)
        np.testing.assert_allclose(y, power / power.sum(axes, keepdims=True), rtol=1e-5, atol=1e-6)


def test_convolution_of_images_with_channels_last() -> None:
    x, w, b = floats(1, 7, 6, 4), floats(5, 3, 3, 4), floats(5)
    (y,) = ran("com.microsoft.NhwcConv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w, b)", x=x, w=w, b=b)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2]
    np.testing.assert_allclose(y, np.einsum("nhwckl,oklc->nhwo", windows, w) + b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("both", [0, 1])
def test_buckets_of_distances(both: int) -> None:
    table, length = floats(3, 32), 150
    given = {"t": table.reshape(32, 3), "q": np.array([length])}
    how = f"is_bidirectional = {both}, max_distance = 128"
    (y,) = ran(f"com.microsoft.RelativePositionBias <{how}> (t, q, q)", **given)
    few = 16 if both else 32
    expected = np.empty((1, 3, length, length), np.float32)
    for i in range(length):
        for j in range(length):
            far = abs(j - i) if both else max(i - j, 0)
            near = few // 2
            more = near + int(math.log(max(far, 1) / near) / math.log(128 / near) * (few - near) + 1e-6)
            bucket = far if far < near else min(more, few - 1)
            expected[0, :, i, j] = table[:, bucket + (few if both and j > i else 0)]
    np.testing.assert_array_equal(y, expected)


def test_gates_of_positions() -> None:
    q, qb, rel, w, b, a = floats(2, 5, 12), floats(12), floats(1, 3, 5, 5), floats(4, 8), floats(8), floats(1, 3, 1, 1)
    call = "com.microsoft.GatedRelativePositionBias <num_heads = 3> (q, qb, rel, w, b, a)"
    (y,) = ran(call, q=q, qb=qb, rel=rel, w=w, b=b, a=a)
    heads = (q + qb).reshape(2, 5, 3, 4).transpose(0, 2, 1, 3)
    gates = 1 / (1 + np.exp(-(heads @ w + b).reshape(2, 3, 5, 2, 4).sum(-1)))
    np.testing.assert_allclose(y, (gates[..., :1] * (gates[..., 1:] * a - 1) + 2) * rel, rtol=1e-5, atol=1e-5)


def test_those_that_onnxruntime_has_for_cpus() -> None:
    ids, segments = R.integers(0, 20, (2, 5)).astype(np.int32), R.integers(0, 2, (2, 5)).astype(np.int32)
    bytes_of = {name: R.integers(0, 256, shape).astype(np.uint8) for name, shape in (("w", (20, 16)), ("p", (9, 16)))}
    bytes_of |= {"s": R.integers(0, 256, (2, 16)).astype(np.uint8), "g": R.integers(130, 256, 16).astype(np.uint8)}
    check(
        """g (int32[2, 5] i, int32[2, 5] k, uint8[20, 16] w, uint8[9, 16] p, uint8[2, 16] s, uint8[16] g, uint8[16] b,
            int32[2, 5] m, float c, uint8 z, uint8[1, 6, 7, 3] x)
            => (float[2, 5, 16] y, int32[2] ends, uint8[1, h, v, 3] r) {
            y, ends = com.microsoft.QEmbedLayerNormalization
                (i, k, w, p, s, g, b, m, c, c, c, c, c, z, z, z, z, z)
            r = com.microsoft.NhwcMaxPool <kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1]> (x)
            }""",
        {
            "i": ids,
            "k": segments,
            **bytes_of,
            "b": bytes_of["g"],
            "m": np.array([[1, 1, 1, 0, 0], [1] * 5], np.int32),
            "c": np.float32(0.02),
            "z": np.uint8(128),
            "x": R.integers(0, 256, (1, 6, 7, 3)).astype(np.uint8),
        },
    )


def test_inverses_are_the_host_s() -> None:
    with pytest.warns(FallbackWarning):
        check(
            "g (float[2, 4, 4] a) => (float[2, 4, 4] y) { y = com.microsoft.Inverse (a) }",
            {"a": floats(2, 4, 4) + 4 * np.eye(4, dtype=np.float32)},
        )
