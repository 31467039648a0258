"""Small networks with schedules of every kind, whole, on a real driver, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import landbridge as lb
from tests.codegen.opencl.machine import Machine

TARGETS = {"gpu": "opencl", "cpu": "opencl -device-class=cpu -vector-bits=512 -vector-registers=32"}
RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def layer_norm() -> list[NodeProto]:
    """Decomposed, as exporters write it."""
    node = helper.make_node
    return [
        node("ReduceMean", ["x"], ["m"], axes=[-1]),
        node("Sub", ["x", "m"], ["d"]),
        node("Mul", ["d", "d"], ["q"]),
        node("ReduceMean", ["q"], ["v"], axes=[-1]),
        node("Add", ["v", "e"], ["w"]),
        node("Sqrt", ["w"], ["s"]),
        node("Div", ["d", "s"], ["n"]),
        node("Mul", ["n", "g"], ["y"]),
    ]


CONV = helper.make_node("Conv", ["x", "w", "b"], ["t"], pads=[1, 1, 1, 1])
DEPTHWISE = helper.make_node("Conv", ["x", "w", "b"], ["t"], pads=[2, 2, 2, 2], strides=[2, 2], group=24)
RELU = helper.make_node("Relu", ["t"], ["y"])
#: Nodes, the input, and constants. 17 and 33 channels leave one for the last vector.
NETS = {
    "conv": ([CONV, RELU], (1, 33, 13, 15), {"w": normal(17, 33, 3, 3), "b": normal(17)}),
    "depthwise": ([DEPTHWISE, RELU], (1, 24, 20, 21), {"w": normal(24, 1, 5, 5), "b": normal(24)}),
    "matmul": ([helper.make_node("MatMul", ["x", "w"], ["t"]), RELU], (70, 50), {"w": normal(50, 97)}),
    "batched": ([helper.make_node("MatMul", ["x", "w"], ["y"])], (3, 40, 24), {"w": normal(3, 24, 56)}),
    "vector": ([helper.make_node("MatMul", ["x", "w"], ["y"])], (1, 700), {"w": normal(700, 33)}),
    "softmax": ([helper.make_node("Softmax", ["x"], ["y"], axis=1)], (4, 300, 5), {}),
    "layer norm": (layer_norm(), (19, 384), {"e": np.float32([1e-5]), "g": normal(384)}),
    "mean": ([helper.make_node("GlobalAveragePool", ["x"], ["y"])], (1, 12, 40, 41), {}),
    "long": ([helper.make_node("ReduceMax", ["x"], ["y"], axes=[0, 1])], (90, 400, 3), {}),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NETS)
def test_a_network_gives_what_onnxruntime_gives(name: str, target: str) -> None:
    nodes, shape, constants = NETS[name]
    x, tensors = normal(*shape), [numpy_helper.from_array(a, key) for key, a in constants.items()]
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)

    def model(result: tuple[int, ...] | None) -> bytes:
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, result)
        graph = helper.make_graph(nodes, "net", [value], [y], tensors)
        opset = [helper.make_opsetid("", 13 if any(n.op_type == "ReduceMax" for n in nodes) else 17)]
        return bytes(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())

    (expected,) = onnxruntime.InferenceSession(model(None)).run(None, {"x": x})
    (found,) = Machine(lb.compile(model(expected.shape), TARGETS[target]))(x)
    # float32 sums of at most 1600 terms in another order: sqrt(1600) x 2^-23 of the largest magnitude.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=5e-6 * float(np.abs(expected).max()))
