"""The adapter for ONNX's own test suite: a part of the suite runs through it, as it is."""

from __future__ import annotations

import unittest

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.testing import onnx_backend
from tests.ops.node_cases import suite

_suite = suite(onnx_backend.LandbridgeBackend, __name__)
for _pattern in (
    "test_relu_",
    "test_matmul_[234]d_",
    "test_clip_example_",
    "test_operator_mm_",
    "test_split_equal",
):
    _suite.include(_pattern)
_chosen = {
    f"{name}": item.func
    for category in _suite._filtered_test_items.values()
    for name, item in category.items()
    if not getattr(item.func, "__unittest_skip__", False)
}


@pytest.mark.sample(9)
@pytest.mark.parametrize("name", sorted(_chosen))
def test_the_suite_runs(name: str) -> None:
    _chosen[name](unittest.TestCase())


def test_only_the_cpu_is_tested() -> None:
    assert len(_chosen) >= 8
    assert all(name.endswith("_cpu") for name in _chosen)
    assert onnx_backend.supports_device("CPU") and onnx_backend.supports_device("CPU:0")
    assert not onnx_backend.supports_device("CUDA")


def test_one_node() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    node = onnx.helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)
    (found,) = onnx_backend.run_node(node, [x])
    assert found == x.sum()
    outputs = onnx_backend.run_node(onnx.helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2), [x])
    np.testing.assert_array_equal(outputs.a, x[:, :2])  # type: ignore[attr-defined]
    np.testing.assert_array_equal(outputs[1], x[:, 2:])


def test_what_is_refused_is_an_error_of_ours() -> None:
    node = onnx.helper.make_node("StringNormalizer", ["x"], ["y"])
    with pytest.raises(lb.LandbridgeError):
        onnx_backend.run_node(node, [np.array(["a"], object)])
