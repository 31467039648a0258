"""Runtimes beside ours: that they run what there is, as often as they are asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from landbridge.cli.peers import peers_named


def _reshaping(folder: Path, declared: list[str]) -> Path:
    """A file that reshapes ``x`` as ``shape`` says, and declares an output with the axes ``declared``."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, ["rank"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, declared)
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "shape"], ["y"])], "one", [x, shape], [y])
    file = folder / "reshape.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    return file


@pytest.mark.parametrize("declared", [["a", "b"], ["a", "b", "c"]], ids=["an axis less", "as it is"])
def test_onnxruntime_runs_again_whatever_axes_the_file_declares(tmp_path: Path, declared: list[str]) -> None:
    inputs = {"x": np.arange(6, dtype=np.float32), "shape": np.array([1, 2, 3])}
    peer = peers_named(["onnxruntime"])["onnxruntime"](_reshaping(tmp_path, declared), inputs, 1)
    for first in (0, 10):
        inputs["x"][:] = np.arange(first, first + 6)  # bound: the next run sees it
        peer.run()
        np.testing.assert_array_equal(peer.outputs()[0], inputs["x"].reshape(1, 2, 3))


def test_onnxruntime_gives_an_output_as_often_as_the_file_says(tmp_path: Path) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "twice", [x], [y, y])
    file = tmp_path / "twice.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    inputs = {"x": np.arange(3, dtype=np.float32)}
    peer = peers_named(["onnxruntime"])["onnxruntime"](file, inputs, 1)
    peer.run()
    for found in peer.outputs():
        np.testing.assert_array_equal(found, -inputs["x"])
    assert len(peer.outputs()) == 2
