"""A small model of two kernels, for tests of what compiling it does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save_product(folder: Path) -> Path:
    """Saves ``y = relu(x @ w)`` in ``folder``; returns the file."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (3, 4)) for name in "xy")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    weights = numpy_helper.from_array(np.eye(4, dtype=np.float32) - 0.5, "w")
    graph = helper.make_graph(nodes, "product", [x], [y], [weights])
    path = folder / "product.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path
