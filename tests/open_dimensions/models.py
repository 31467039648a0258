"""Small models whose dimensions are open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Weights:
    """Seeded initializers, which keep the numbers that go through a network near 1."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(7)
        self.made: list[onnx.TensorProto] = []

    def __call__(self, *shape: int) -> str:
        scale = 1 / np.sqrt(max(np.prod(shape[1:]), 1))
        return self.add((self._rng.standard_normal(shape) * scale).astype(np.float32))

    def add(self, array: np.ndarray) -> str:
        name = f"w{len(self.made)}"
        self.made.append(numpy_helper.from_array(array, name))
        return name

    def ints(self, *values: int) -> str:
        return self.add(np.array(values, np.int64))


def model(
    nodes: Sequence[onnx.NodeProto],
    weights: Weights,
    inputs: dict[str, Sequence[int | str]],
    outputs: dict[str, int],
    opset: int = 17,
) -> onnx.ModelProto:
    """A checked model; ``outputs`` are ranks by name."""
    graph = helper.make_graph(
        list(nodes),
        "open",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, list(s)) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * rank) for n, rank in outputs.items()],
        weights.made,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def convolutions() -> onnx.ModelProto:
    """Strides, padding, a depthwise layer, pools, a gate of global means and a residue: N x 3 x H x W."""
    w, n = Weights(), helper.make_node
    return model(
        [
            n("Conv", ["x", w(16, 3, 3, 3), w(16)], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
            n("Relu", ["a"], ["b"]),
            n("Conv", ["b", w(16, 1, 5, 5)], ["c"], pads=[2, 2, 2, 2], group=16),
            n("GlobalAveragePool", ["c"], ["m"]),
            n("Conv", ["m", w(16, 16, 1, 1)], ["g"]),
            n("Sigmoid", ["g"], ["s"]),
            n("Mul", ["c", "s"], ["d"]),
            n("Add", ["d", "b"], ["e"]),
            n("MaxPool", ["e"], ["f"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
            n("AveragePool", ["f"], ["y"], kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]),
        ],
        w,
        {"x": ["N", 3, "H", "W"]},
        {"y": 4},
    )


def attention() -> onnx.ModelProto:
    """Self-attention of two heads over N x T x 32, with shapes that the model computes itself."""
    w, n = Weights(), helper.make_node
    heads = []
    for name in "qkv":
        heads += [
            n("MatMul", ["x", w(32, 32)], [f"{name}0"]),
            n("Reshape", [f"{name}0", "split"], [f"{name}1"]),
            n("Transpose", [f"{name}1"], [name], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]),
        ]
    return model(
        [
            n("Shape", ["x"], ["shape"]),
            n("Gather", ["shape", w.add(np.array(0))], ["batch"]),
            n("Gather", ["shape", w.add(np.array(1))], ["length"]),
            n("Unsqueeze", ["batch", w.ints(0)], ["b1"]),
            n("Unsqueeze", ["length", w.ints(0)], ["t1"]),
            n("Concat", ["b1", "t1", w.ints(2), w.ints(16)], ["split"], axis=0),
            n("Concat", ["b1", "t1", w.ints(-1)], ["join"], axis=0),
            *heads,
            n("MatMul", ["q", "k"], ["scores"]),
            n("Mul", ["scores", w.add(np.float32(0.25))], ["scaled"]),
            n("Softmax", ["scaled"], ["p"], axis=-1),
            n("MatMul", ["p", "v"], ["o"]),
            n("Transpose", ["o"], ["o1"], perm=[0, 2, 1, 3]),
            n("Reshape", ["o1", "join"], ["o2"]),
            n("Add", ["o2", "x"], ["r"]),
            n("ReduceMean", ["r"], ["mean"], axes=[-1]),
            n("Sub", ["r", "mean"], ["centred"]),
            n("ReduceMean", ["centred"], ["y"], axes=[1], keepdims=0),
        ],
        w,
        {"x": ["N", "T", 32]},
        {"y": 2, "centred": 3},
    )


def positions() -> onnx.ModelProto:
    """What is computed from the numbers that extents are, positions and the shape itself; and a decoder's steps."""
    w, n = Weights(), helper.make_node
    return model(
        [
            n("Shape", ["x"], ["shape"]),
            n("Gather", ["shape", w.add(np.array(2))], ["length"]),
            n("Range", [w.add(np.array(0)), "length", w.add(np.array(1))], ["at"]),
            n("Cast", ["at"], ["position"], to=TensorProto.FLOAT),
            n("Cast", ["length"], ["scale"], to=TensorProto.FLOAT),
            n("Div", ["position", "scale"], ["relative"]),
            n("Conv", ["x", w(8, 4, 3)], ["c"], pads=[1, 1]),
            n("Add", ["c", "relative"], ["e"]),
            n("Resize", ["e", "", w.add(np.array([1, 1, 2], np.float32))], ["twice"], mode="nearest",
              coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
            n("ConvTranspose", ["twice", w(8, 2, 2)], ["y"], strides=[2]),
            n("Cast", ["shape"], ["z"], to=TensorProto.FLOAT),
        ],
        w,
        {"x": ["N", 4, "L"]},
        {"y": 3, "z": 1},
    )  # fmt: skip


def parts() -> onnx.ModelProto:
    """Slices from both ends, parts that are concatenated, a transpose, and two inputs of one length."""
    w, n = Weights(), helper.make_node
    return model(
        [
            n("Slice", ["a", w.ints(1), w.ints(2**31 - 1), w.ints(1)], ["tail"]),
            n("Slice", ["b", w.ints(0), w.ints(-1), w.ints(1)], ["head"]),
            n("Concat", ["tail", "head"], ["c"], axis=1),
            n("Transpose", ["c"], ["d"], perm=[1, 0]),
            n("MatMul", ["d", w(4, 9)], ["e"]),
            n("Softmax", ["e"], ["y"], axis=0),
        ],
        w,
        {"a": [4, "L"], "b": [4, "L"]},
        {"y": 2},
    )
