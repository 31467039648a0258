"""The work of kernels, beside what is counted by hand or point by point."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.executable.kernel_facts import facts_of
from landbridge.executable.parts import KernelFacts


def compiled(nodes: list[object], x: tuple[int, ...], weights: dict[str, np.ndarray]) -> dict[str, KernelFacts]:  # type: ignore[type-arg]
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [f"y{i}" for i in range(len(x))])]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", values, outputs, initializers)
    model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return facts_of(lb.compile(model))


def test_a_product_is_two_operations_a_term_and_its_operands_once() -> None:
    (facts,) = compiled(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], (5, 64), {"w": np.ones((64, 48), np.float32)}
    ).values()
    assert (facts.flops, facts.nbytes) == (2 * 5 * 64 * 48, 4 * (5 * 64 + 64 * 48 + 5 * 48))
    assert "lanes" in facts.schedule
    rows, columns = map(int, facts.schedule.split(" ")[0].split("x"))
    tiles = [text.partition(":")[0] for text in facts.weighed]
    assert f"{rows}x{columns}" in tiles and all(text.endswith(" cycles") for text in facts.weighed)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("kernel", "stride", "pad", "size"), [(3, 1, 1, 8), (5, 2, 2, 9), (1, 1, 0, 4), (7, 2, 3, 20)])
def test_padding_of_windows_is_no_work(kernel: int, stride: int, pad: int, size: int) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[stride] * 2, pads=[pad] * 4)
    found = compiled([node], (1, 16, size, size), {"w": np.ones((32, 16, kernel, kernel), np.float32)})
    out = (size + 2 * pad - kernel) // stride + 1
    inside = sum(0 <= o * stride + k - pad < size for o in range(out) for k in range(kernel))
    convolution = max(found.values(), key=lambda facts: facts.flops)
    assert convolution.flops == 2 * 16 * 32 * inside**2


def test_of_a_table_the_rows_taken_count() -> None:
    indices = np.array([3, 1, 2], np.int64)
    found = compiled(
        [helper.make_node("Add", ["x", "x"], ["t"]), helper.make_node("Gather", ["t", "i"], ["y"], axis=0)],
        (1000, 16),
        {"i": indices},
    )
    assert math.prod((3, 16)) * 4 <= min(facts.nbytes for facts in found.values()) < 1000 * 16 * 4


def test_open_extents_count_for_each_size() -> None:
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 8))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("N", 8))]
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "g", values, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (facts,) = facts_of(lb.compile(model, dims={"N": lb.Dim(1, 64)})).values()
    assert not isinstance(facts.nbytes, int)
    assert (facts.flops.at({"N": 5}), facts.nbytes.at({"N": 5})) == (40, 320)  # type: ignore[attr-defined]
