"""The two networks that microcontrollers are measured with, with seeded weights: their layers are the published ones.

``keyword_spotter`` is the depthwise separable network of Zhang et al., "Hello Edge" (2017), in the form that the
benchmark MLPerf Tiny has; ``person_detector`` is MobileNet v1 of width 0.25 on 96x96 grey pixels (Chowdhery et al.,
"Visual Wake Words", 2019), as the example of TensorFlow Lite Micro is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

#: Channels and stride of the blocks of MobileNet v1 behind its first convolution, at width 1.
_MOBILENET = [
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1),
]  # fmt: skip


class _Layers:
    """Appends layers to a graph; weights keep the variance of what flows through about 1."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, values: NDArray[Any]) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def conv(self, x: str, shape: tuple[int, int, int, int], stride: int, group: int = 1) -> str:
        """Appends a Conv of weights ``shape`` (out, in, rows, columns), a BatchNormalization and a Relu."""
        fan_in = shape[1] * shape[2] * shape[3]
        w = self.weight(self.rng.standard_normal(shape) * np.sqrt(2 / fan_in))
        y = self.node("Conv", x, w, strides=[stride, stride], auto_pad="SAME_UPPER", group=group)
        channels, rng = shape[0], self.rng
        parts = [
            rng.uniform(0.8, 1.2, channels),
            *rng.standard_normal((2, channels)) / 8,
            rng.uniform(0.7, 1.3, channels),
        ]
        return self.node("Relu", self.node("BatchNormalization", y, *(self.weight(part) for part in parts)))

    def separable(self, x: str, before: int, after: int, stride: int) -> str:
        """Appends a depthwise and a pointwise convolution."""
        x = self.conv(x, (before, 1, 3, 3), stride, group=before)
        return self.conv(x, (after, before, 1, 1), 1)

    def classes(self, x: str, features: int, count: int) -> str:
        """Appends the mean over the picture, a product and the softmax."""
        pooled = self.node("Flatten", self.node("GlobalAveragePool", x))
        w = self.weight(self.rng.standard_normal((features, count)) / np.sqrt(features))
        logits = self.node("Gemm", pooled, w, self.weight(self.rng.standard_normal(count) / 8))
        return self.node("Softmax", logits, axis=1)

    def model(self, name: str, shape: tuple[int, ...], output: str, count: int) -> onnx.ModelProto:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info(output, TensorProto.FLOAT, (1, count))
        graph = helper.make_graph(self.nodes, name, [x], [y], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def keyword_spotter() -> onnx.ModelProto:
    """Returns the network of 12 words on 49 frames of 10 coefficients: 1x1x49x10 to 1x12."""
    layers = _Layers(0)
    x = layers.conv("x", (64, 1, 10, 4), 2)
    for _ in range(4):
        x = layers.separable(x, 64, 64, 1)
    return layers.model("keywords", (1, 1, 49, 10), layers.classes(x, 64, 12), 12)


def person_detector() -> onnx.ModelProto:
    """Returns the network of "person" and "no person" on a grey picture: 1x1x96x96 to 1x2."""
    layers = _Layers(1)
    x, channels = layers.conv("x", (8, 1, 3, 3), 2), 8
    for width, stride in _MOBILENET:
        x = layers.separable(x, channels, width // 4, stride)
        channels = width // 4
    return layers.model("person", (1, 1, 96, 96), layers.classes(x, channels, 2), 2)


class _Pictures:
    """Inputs that the ranges of a quantized model are taken from."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._left: Iterator[dict[str, NDArray[np.float32]]] = iter([{"x": sample(shape, seed)} for seed in range(8)])

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        return next(self._left, None)


def sample(shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    """Returns an input in which neighbours are alike, as those of pictures are; of mean 0 and deviation about 1."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    for axis in (-2, -1):
        values = values + np.roll(values, 1, axis)
    return (values / 2).astype(np.float32)


def quantized(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """Returns ``model`` in int8, with pairs of QuantizeLinear and DequantizeLinear, by onnxruntime's own tool."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    source, made = folder / "float.onnx", folder / "int8.onnx"
    onnx.save(_folded(model), source)
    shape = tuple(d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim)
    quantize_static(
        source, made, _Pictures(shape), quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QInt8, weight_type=QuantType.QInt8, per_channel=True,
    )  # fmt: skip
    found: onnx.ModelProto = onnx.load(made)
    return found


def _folded(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns ``model`` with each BatchNormalization in the weights of its Conv, as exporters leave it."""
    values = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if node.op_type != "BatchNormalization":
            nodes.append(onnx.NodeProto.FromString(node.SerializeToString()))
            continue
        conv, (scale, bias, mean, variance) = nodes[-1], (values.pop(name) for name in node.input[1:])
        factor = scale / np.sqrt(variance + 1e-5)
        values[conv.input[1]] = (values[conv.input[1]] * factor[:, None, None, None]).astype(np.float32)
        values[node.input[2]] = (bias - mean * factor).astype(np.float32)
        conv.input.append(node.input[2])
        conv.output[0] = node.output[0]
    folded: onnx.ModelProto = onnx.ModelProto.FromString(model.SerializeToString())
    del folded.graph.node[:], folded.graph.initializer[:]
    folded.graph.node.extend(nodes)
    folded.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in values.items())
    return folded
