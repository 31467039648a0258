"""Small ONNX models that tests and documents compile."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper


def edges(height: int = 128, width: int = 160, channels: int = 16) -> ModelProto:
    """``y = relu(conv3x3(relu(conv3x3(x))))``: x is 1x3xHxW, y is 1xCxHxW, float32; weights over 4 KiB."""
    rng = np.random.default_rng(0)
    first = rng.normal(0, 0.25, (channels, 3, 3, 3)).astype(np.float32)
    second = rng.normal(0, 0.1, (channels, channels, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], name="relu1"),
        helper.make_node("Conv", ["b", "w2"], ["c"], name="conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"], name="relu2"),
    ]
    return _model(
        nodes,
        ("x", (1, 3, height, width)),
        ("y", (1, channels, height, width)),
        {"w1": first, "w2": second},
    )


def projection(rows: int = 8, inner: int = 512, columns: int = 512) -> ModelProto:
    """``y = x @ w``: x is rows x inner, w inner x columns (1 MiB by default), float32."""
    weight = np.random.default_rng(1).normal(0, 0.05, (inner, columns)).astype(np.float32)
    return _model(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="project")],
        ("x", (rows, inner)),
        ("y", (rows, columns)),
        {"w": weight},
    )


def add(length: int = 64) -> ModelProto:
    """``y = x + b``, float32 (length,)."""
    bias = np.arange(length, dtype=np.float32)
    return _model(
        [helper.make_node("Add", ["x", "b"], ["y"], name="add")], ("x", (length,)), ("y", (length,)), {"b": bias}
    )


def _model(
    nodes: list[object],
    source: tuple[str, tuple[int, ...]],
    result: tuple[str, tuple[int, ...]],
    weights: dict[str, np.ndarray],
) -> ModelProto:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (source, result)]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "small", values[:1], values[1:], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
