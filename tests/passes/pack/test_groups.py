"""Grouped convolutions: blocked where tiles lie within a group, and equal to onnxruntime's whatever the groups are."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.executable.kernel_facts import facts_of


def model(batch: int, channels: int, outputs: int, groups: int, kernel: int, stride: int, size: int) -> ModelProto:
    """A 1x1 convolution, so that what is read may be blocked, and a grouped one behind it."""
    rng, pad = np.random.default_rng(channels + outputs), kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1
    weights = {
        "v": rng.standard_normal((channels, 8, 1, 1)),
        "w": rng.standard_normal((outputs, channels // groups, kernel, kernel)),
        "b": rng.standard_normal(outputs),
    }
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["t"]),
        helper.make_node("Conv", ["t", "w", "b"], ["u"], group=groups, pads=[pad] * 4, strides=[stride] * 2),
        helper.make_node("Relu", ["u"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "groups",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (batch, 8, size, size))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (batch, outputs, out, out))],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", ["llvm", "llvm -vector-bits=256 -vector-registers=16", "c"])
@pytest.mark.parametrize(
    ("batch", "channels", "outputs", "groups", "kernel", "stride", "size"),
    [
        (1, 96, 64, 2, 5, 1, 13),
        (2, 64, 64, 4, 3, 2, 9),
        (1, 64, 128, 2, 1, 1, 7),
        (1, 24, 96, 3, 3, 1, 8),  # sums of 8 channels, of which there is no whole block
        (1, 96, 48, 2, 3, 1, 8),  # 24 outputs a group: no whole blocks
        (1, 64, 40, 4, 3, 1, 6),
    ],
)
def test_results_are_onnxruntimes(
    target: str, batch: int, channels: int, outputs: int, groups: int, kernel: int, stride: int, size: int
) -> None:
    made = model(batch, channels, outputs, groups, kernel, stride, size)
    x = np.random.default_rng(0).standard_normal((batch, 8, size, size)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    (found,) = lb.Session(lb.compile(made, target))(x)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(("channels", "outputs", "groups"), [(96, 64, 2), (64, 64, 4), (24, 96, 3)])
def test_groups_of_whole_blocks_are_computed_in_vectors(channels: int, outputs: int, groups: int) -> None:
    facts = facts_of(lb.compile(model(1, channels, outputs, groups, 3, 1, 8), "llvm -vector-bits=512"))
    longest = max(facts.values(), key=lambda each: each.flops)
    assert "16 lanes" in longest.schedule
