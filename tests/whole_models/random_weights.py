"""Seeded random weights for the models of the onnx wheel, whose own are one constant and hide permuted channels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

LIGHT_MODELS = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def with_random_weights(name: str, inputs: dict[str, np.ndarray], seed: int = 0) -> onnx.ModelProto:
    """``light_<name>.onnx`` with weights as large as their layers need, and class scores that vary on ``inputs``."""
    model = onnx.load(LIGHT_MODELS / f"light_{name}.onnx")
    graph, rng = model.graph, np.random.default_rng(seed)
    shapes = _weight_shapes(graph)
    weights: dict[str, np.ndarray] = {}
    for node in graph.node:
        for role, weight in enumerate(node.input):
            if node.op_type in _DRAW and weight in shapes:
                weights[weight] = _DRAW[node.op_type](rng, role, shapes[weight]).astype(np.float32)
    _replace(graph, weights)
    model.ir_version = max(model.ir_version, 4)  # from there on, initializers need not be inputs
    _spread_scores(model, inputs)
    onnx.checker.check_model(model)
    return model


def _draw_layer(rng: np.random.Generator, role: int, shape: tuple[int, ...]) -> np.ndarray:
    if role == 2:
        return rng.normal(0, 0.1, shape)
    return rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)  # variance stays through convolution and relu


def _draw_normalization(rng: np.random.Generator, role: int, shape: tuple[int, ...]) -> np.ndarray:
    positive = role in (1, 4)  # scale, variance
    return rng.uniform(0.5, 1.5, shape) if positive else rng.normal(0, 0.1, shape)


_DRAW = {"Conv": _draw_layer, "Gemm": _draw_layer, "BatchNormalization": _draw_normalization}


def _weight_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """Shapes of float initializers, and of what the graph's ConstantOfShape nodes make of integer ones."""
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    shapes = {name: array.shape for name, array in arrays.items() if array.dtype == np.float32}
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            shapes[node.output[0]] = tuple(int(extent) for extent in arrays[node.input[0]])
    return shapes


def _replace(graph: onnx.GraphProto, weights: dict[str, np.ndarray]) -> None:
    nodes = [node for node in graph.node if not (node.op_type == "ConstantOfShape" and node.output[0] in weights)]
    used = {name for node in nodes for name in node.input}
    retained = [tensor for tensor in graph.initializer if tensor.name in used and tensor.name not in weights]
    inputs = [value for value in graph.input if value.name in used and value.name not in weights]
    del graph.node[:], graph.initializer[:], graph.input[:]
    graph.node.extend(nodes)
    graph.initializer.extend(retained)
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    graph.input.extend(inputs)


def _spread_scores(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> None:
    """Scale the last layer so that what goes into the softmax has deviation 1."""
    graph = model.graph
    (softmax,) = (node for node in graph.node if node.op_type == "Softmax")
    last = [node for node in graph.node if node.op_type in ("Conv", "Gemm")][-1]
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.append(onnx.helper.make_empty_tensor_value_info(softmax.input[0]))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # of inputs that are weights too it says a line each
    session = onnxruntime.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (scores,) = session.run([softmax.input[0]], inputs)
    for tensor in graph.initializer:
        if tensor.name in last.input[1:3]:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) / scores.std(), tensor.name))
