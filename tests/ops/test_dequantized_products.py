"""Products between DequantizeLinear and QuantizeLinear: integer sums, scaled, against float64 and onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from tests.ops.test_byte_products import drawn

Array = np.ndarray[Any, Any]
SCALE = np.float32(0.05)


def quantized_layer(
    op: str, x: Array, w: Array, scales: Array, zero: Array, bias: Array | None, axis: int, **attributes: Any
) -> ModelProto:
    """``x``, quantized by ``SCALE`` and ``zero`` and back, by ``op`` with dequantized weights, then quantized."""
    constants = {"s": SCALE, "z": zero, "w": w, "ws": scales, "wz": np.zeros_like(w, shape=scales.shape)}
    constants |= {"t": np.float32(0.7)} | ({} if bias is None else {"b": bias})
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=axis),
        helper.make_node(op, ["xd", "wd", *(["b"] if bias is not None else [])], ["f"], **attributes),
        helper.make_node("QuantizeLinear", ["f", "t", "z"], ["y"]),
    ]
    kind = helper.np_dtype_to_tensor_dtype(zero.dtype)
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [
            helper.make_tensor_value_info("f", TensorProto.FLOAT, [None] * x.ndim),
            helper.make_tensor_value_info("y", kind, [None] * x.ndim),
        ],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


CASES = [
    ("Conv", (2, 20, 7, 9), (24, 20, 3, 3), 0, {"pads": [1, 1, 1, 1]}),
    ("Conv", (1, 64, 5, 6), (33, 64, 1, 1), 0, {"strides": [2, 1]}),
    ("Conv", (1, 16, 6, 6), (16, 4, 3, 3), 0, {"group": 4}),
    ("Conv", (1, 6, 6, 6), (6, 1, 3, 3), 0, {"group": 6}),
    ("MatMul", (5, 70), (70, 33), 1, {}),
    ("MatMul", (2, 3, 70), (70, 16), 1, {}),
    ("Gemm", (5, 37), (20, 37), 0, {"transB": 1}),
    ("Gemm", (5, 37), (37, 20), 1, {"alpha": 0.5, "beta": 2.0}),
]


def run(model: ModelProto, x: Array, target: str) -> Sequence[Array]:
    return [np.array(y) for y in lb.Session(lb.compile(model, target), num_threads=1)(x)]


@pytest.mark.sample(6)
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v2", "c"])
@pytest.mark.parametrize(("op", "data", "weights", "axis", "attributes"), CASES)
@pytest.mark.parametrize(("dtype", "scaled"), [("uint8", "channels"), ("int8", "channels"), ("uint8", "whole")])
def test_layers(
    op: str,
    data: tuple[int, ...],
    weights: tuple[int, ...],
    axis: int,
    attributes: Any,
    dtype: str,
    scaled: str,
    target: str,
) -> None:
    rng = np.random.default_rng(5)
    zero = np.array(101 if dtype == "uint8" else -7, dtype)
    x = (rng.standard_normal(data) * 3).astype(np.float32)
    w, scales = drawn("int8", weights, 2), rng.uniform(0.001, 0.01, weights[axis]).astype(np.float32)
    if scaled == "whole":  # one scale of no axes, as onnxruntime's quantizer writes unless it is asked for channels
        scales = np.array(0.007, np.float32)
    bias = None if op == "MatMul" else rng.standard_normal(weights[axis]).astype(np.float32)
    model = quantized_layer(op, x, w, scales, zero, bias, axis, **attributes)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    wanted, quanta = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
    found, ours = run(model, x, target)
    # Terms of onnxruntime's sums in f32 are rounded; ours are scaled once, then the bias is added.
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5 * np.abs(wanted).max())
    assert np.abs(ours.astype(int) - quanta.astype(int)).max() <= 1


def test_integer_sums_are_what_is_computed() -> None:
    """A sum of f32 that terms of both signs cancel in has an error; one of integers none."""
    depth = 4096
    x = np.tile(np.array([SCALE * 120, SCALE * 119], np.float32), depth // 2)[None]
    w = np.tile(np.array([[119], [-120]], np.int8), (depth // 2, 16))
    model = quantized_layer("MatMul", x, w, np.full(16, 0.0071, np.float32), np.array(0, np.int8), None, 1)
    (found, _) = run(model, x, "llvm")
    np.testing.assert_array_equal(found, np.zeros((1, 16), np.float32))
