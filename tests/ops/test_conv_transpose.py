"""Transposed convolutions of one to three spatial axes beside their definition in float64."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from tests.ops.elementwise_models import KINDS
from tests.ops.one_node import Array, one_node, run_node

#: Data, weights and attributes: summed products (channels enough), phases (few channels, no tap in vain), and both of
#: them with groups; more phases than are summed each by its own code; strides of some axes alone.
CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 16, 3, 4, 5), (16, 8, 3, 3, 3), {"strides": [2, 2, 2]}),
    ((2, 16, 3, 4, 5), (16, 9, 4, 4, 4), {"strides": [2, 2, 2], "pads": [1, 1, 1, 1, 1, 1]}),
    ((1, 3, 3, 4, 5), (3, 2, 3, 3, 3), {"strides": [2, 2, 2], "output_padding": [1, 1, 1]}),
    ((1, 2, 3, 4, 17), (2, 10, 4, 4, 4), {"strides": [2, 2, 2]}),
    ((1, 32, 3, 4, 5), (32, 5, 3, 3, 3), {"strides": [2, 2, 2], "group": 2}),
    ((1, 6, 3, 4, 5), (6, 1, 3, 3, 3), {"strides": [2, 2, 2], "group": 6}),
    ((1, 32, 3, 4, 5), (32, 8, 4, 5, 4), {"strides": [3, 3, 3]}),
    ((1, 24, 3, 4, 5), (24, 8, 5, 5, 5), {"strides": [4, 4, 4]}),
    ((1, 32, 3, 4, 5), (32, 8, 3, 3, 3), {"strides": [1, 2, 2], "pads": [0, 1, 0, 1, 0, 1]}),
    ((1, 32, 3, 4, 5), (32, 8, 3, 3, 3), {"strides": [2, 2, 2], "dilations": [2, 1, 2]}),
    ((1, 16, 3, 4, 5), (16, 8, 2, 2, 2), {"strides": [2, 2, 2]}),
    ((1, 16, 9), (16, 8, 3), {"strides": [2]}),
    ((1, 32, 7, 8), (32, 16, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 32, 7, 8), (32, 3, 10, 10), {"strides": [5, 5]}),
]


def truth(x: Array, w: Array, **given: Any) -> Array:
    """What each element of the data adds to the elements of the result that it reaches."""
    (n, _, *spatial), (_, each, *kernel) = x.shape, w.shape
    rank, group = len(spatial), given.get("group", 1)
    stride, dilation = (np.array(given.get(name, [1] * rank)) for name in ("strides", "dilations"))
    pads = np.array(given.get("pads", [0] * 2 * rank)).reshape(2, rank)
    full = (np.array(spatial) - 1) * stride + (np.array(kernel) - 1) * dilation + 1
    y = np.zeros((n, group * each, *(full + np.array(given.get("output_padding", [0] * rank)))))
    parts = zip(np.split(x, group, 1), np.split(w, group, 0), np.split(y, group, 1), strict=True)
    for data, weights, target in parts:
        for tap in product(*map(range, kernel)):
            places: Any = tuple(
                slice(t * d, t * d + (e - 1) * s + 1, s)
                for t, d, e, s in zip(tap, dilation, spatial, stride, strict=True)
            )
            taps: Any = (Ellipsis, *tap)
            target[(Ellipsis, *places)] += np.einsum("nc...,cm->nm...", data, weights[taps])
    inside: Any = tuple(slice(a, e - b) for a, b, e in zip(*pads, y.shape[2:], strict=True))
    return np.asarray(y[(Ellipsis, *inside)])


def given(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def check(y: Array, x: Array, w: Array, bias: Array | float = 0.0, **attributes: Any) -> None:
    want = truth(x.astype(np.float64), w.astype(np.float64), **attributes) + bias
    magnitude = truth(np.abs(x.astype(np.float64)), np.abs(w.astype(np.float64)), **attributes) + np.abs(bias)
    eps = np.finfo(np.float32).eps if x.dtype != np.float16 else np.finfo(np.float16).eps
    assert y.shape == want.shape
    assert (np.abs(y - want) <= 8 * eps * magnitude).all()


@pytest.mark.sample(5)
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_values(case: tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], constant: bool) -> None:
    (shape, weights, attributes), bias = case, given((64,), seed=2)
    x, w = given(shape), given(weights, seed=1)
    b = bias[: weights[1] * attributes.get("group", 1)]
    (y,) = run_node("ConvTranspose", [x, w, b], (1, 2) if constant else (), **attributes)
    check(y, x, w, b.reshape(-1, *[1] * (len(shape) - 2)).astype(np.float64), **attributes)


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("case", [CASES[0], CASES[3], CASES[4]])
def test_every_target(case: tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], dtype: str, target: str) -> None:
    shape, weights, attributes = case
    x, w = given(shape, dtype), given(weights, dtype, 1)
    (y,) = run_node("ConvTranspose", [x, w], (1,), target=target, **attributes)
    assert y.dtype == x.dtype
    check(y.astype(np.float64), x, w, **attributes)


def test_open_volumes() -> None:
    w = given((16, 8, 3, 3, 3), seed=1)
    model = one_node("ConvTranspose", [given((1, 16, 3, 4, 5)), w], (1,), strides=[2, 2, 2])
    for axis in (0, 2, 3, 4):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"d{axis}"
    model.graph.output[0].type.tensor_type.ClearField("shape")
    session = lb.Session(lb.compile(model), num_threads=1)
    for shape in ((1, 16, 1, 1, 1), (1, 16, 3, 4, 5), (2, 16, 5, 3, 18)):
        x = given(shape)
        check(np.asarray(session(x)[0]), x, w, strides=[2, 2, 2])
