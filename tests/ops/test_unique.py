"""Unique by a kernel beside numpy, and beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import landbridge as lb
from landbridge.operators import REGISTRY, HostOperator

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("error::landbridge.FallbackWarning")
DTYPES = (
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)


def found(x: Array, peer: bool = False) -> list[Array]:
    node = helper.make_node("Unique", ["x"], ["y", "first", "which", "times"], sorted=0)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    outputs = [helper.make_tensor_value_info(n, t, [None]) for n, t in zip(node.output, (kind, 7, 7, 7), strict=True)]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", kind, x.shape)], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if peer:
        return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    return [np.asarray(each) for each in lb.Session(lb.compile(model))(x)]


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype: str) -> None:
    """Numbers that often come again, of both signs where there are."""
    x = np.random.default_rng(0).integers(0 if dtype[0] in "ub" else -9, 10, (20, 30)).astype(dtype)
    operator = REGISTRY.find(HostOperator, "", "Unique", 17)
    assert operator is not None
    for got, wanted in zip(found(x), operator.bound({"sorted": 0})(x), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_beside_onnxruntime(count: int) -> None:
    """Of one number, of one that comes twice, and of those that come once but for zeros of both signs."""
    x = np.random.default_rng(1).permutation(np.arange(count) - 500).astype(np.float32)
    x[-1] = x[0] if count < 3 else -0.0
    for got, wanted in zip(found(x), found(x, peer=True), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_what_is_no_number_is_there_once() -> None:
    x = np.array([np.nan, 1, -np.nan, np.inf, 1], np.float32)
    y, first, which, times = found(x)
    np.testing.assert_array_equal(y, [np.nan, 1, np.inf])
    assert (first.tolist(), which.tolist(), times.tolist()) == ([0, 1, 3], [0, 1, 0, 2, 1], [2, 2, 1])
