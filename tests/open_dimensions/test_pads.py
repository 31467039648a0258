"""Pad along axes of any extent, and by amounts that an input says."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.executable.instance import ExtentValues, instance
from tests.witnesses.guard_pages import GuardedRun

CASES = [
    ("constant", [0, 3, 0, 2], 1),
    ("constant", [0, -1, 0, 2], 2),
    ("edge", [1, 4, 2, 0], 1),
    ("reflect", [0, 3, 0, 4], 5),
    ("reflect", [0, 5, 0, 4], 2),
    ("wrap", [0, 3, 0, 7], 1),
    ("wrap", [0, -2, 0, 5], 4),
]


def padded(mode: str, pads: list[int] | None) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, "L"])]
    known = [numpy_helper.from_array(np.array(7, np.float32), "seven")]
    if pads is None:
        inputs.append(helper.make_tensor_value_info("pads", TensorProto.INT64, [4]))
    else:
        known.append(numpy_helper.from_array(np.array(pads, np.int64), "pads"))
    node = helper.make_node("Pad", ["x", "pads", "seven"], ["y"], mode=mode)
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None])]
    graph = helper.make_graph([node], "pad", inputs, result, known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


@pytest.mark.sample(4)
@pytest.mark.parametrize(("mode", "pads", "least"), CASES)
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_along_an_axis_of_any_extent(mode: str, pads: list[int], least: int, target: str) -> None:
    model = padded(mode, pads)
    peer = onnxruntime.InferenceSession(model.SerializeToString())
    executable = lb.compile(model, target, dims={"L": f"{least}..40"})
    for length in (least, least + 1, 6, 7, 40):
        x = np.arange(3 * length, dtype=np.float32).reshape(3, length)
        if mode == "reflect" and length <= max(pads):  # onnxruntime reflects once
            expected = np.pad(x, [(pads[0], pads[2]), (pads[1], pads[3])], mode="reflect")
        else:
            (expected,) = peer.run(None, {"x": x})
        one = instance(executable, {"L": length}, ExtentValues())
        for side in ("before", "after"):
            np.testing.assert_array_equal(GuardedRun(one, side)(x)[0], expected)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_by_amounts_that_an_input_says(mode: str) -> None:
    model = padded(mode, None)
    peer = onnxruntime.InferenceSession(model.SerializeToString())
    executable = lb.compile(
        model,
        shapes={"x": (3, "L")},
        constants={"pads": [0, "A", 0, "B"]},
        dims={"L": "5..20", "A": "0..4", "B": "0..4"},
    )
    session = lb.Session(executable)
    for length, before, after in ((5, 4, 0), (20, 0, 4), (9, 0, 0), (9, 2, 3)):
        x = np.arange(3 * length, dtype=np.float32).reshape(3, length)
        pads = np.array([0, before, 0, after], np.int64)
        (found,) = session(x, pads)
        np.testing.assert_array_equal(np.asarray(found), peer.run(None, {"x": x, "pads": pads})[0])
