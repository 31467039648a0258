"""The device mynpu keeps the contract, and a network on it computes what the CPU does."""

from __future__ import annotations

import landbridge as lb
import numpy as np
import pytest
from landbridge.testing.conformance import DeviceConformance
from onnx import ModelProto, TensorProto, helper, numpy_helper


class TestConformance(DeviceConformance):
    device_name = "mynpu"


def network() -> ModelProto:
    """A convolution, a matrix product on what it makes, and a softmax."""
    random = np.random.default_rng(1)
    weights = {"w": random.standard_normal((8, 3, 3, 3)), "v": random.standard_normal((8, 5))}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
        helper.make_node("MatMul", ["f", "v"], ["m"], name="product"),
        helper.make_node("Softmax", ["m"], ["y"], name="softmax"),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 12, 16))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 5))],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("on_cpu", [None, "conv", "product"])
def test_a_network(on_cpu: str | None) -> None:
    x = np.random.default_rng(2).standard_normal((1, 3, 12, 16)).astype(np.float32)
    target = lb.Target.from_device(lb.device("mynpu"))
    if on_cpu is None:
        session = lb.Session(lb.compile(network(), target), device="mynpu")
    else:
        executable = lb.compile(network(), {"mynpu": target, "cpu": "llvm"}, place={on_cpu: "cpu"})
        session = lb.Session(executable, devices={"mynpu": "mynpu", "cpu": "cpu"})
    session.set_input("x", x)
    session.run()
    found = np.asarray(session.get_output(0).to_device("cpu"))
    wanted = np.asarray(lb.Session(lb.compile(network(), "llvm"))(x)[0])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
