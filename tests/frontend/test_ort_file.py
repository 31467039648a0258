"""Models in files ``.ort``, as onnxruntime writes them, against onnxruntime on the same file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import landbridge as lb
import landbridge.onnxruntime as ours

PLAIN = """<ir_version: 8, opset_import: ["": 18]> g (float[N, 3, 8, 8] x) => (float[N, 4, 6, 6] y, float[N, 4] m)
<float[4] b = {0, 1, -1, 2}> {
    c = Conv <kernel_shape = [3, 3]> (x, w, b) y = Relu (c)
    axes = Constant <value_ints = [2, 3]> () m = ReduceMean <keepdims = 0> (y, axes) }"""
BRANCHES = """<ir_version: 8, opset_import: ["": 18]> g (float[4] x, bool c) => (float[4] y, float[4] z) {
    t = Constant <value_float = 2.0> ()
    y = If (c) <then_branch = a () => (float[4] p) { p = Mul (x, t) },
        else_branch = b () => (float[4] q) { q = Neg (x) }>
    z = LeakyRelu <alpha = 0.25> (x) }"""


def as_ort(text: str, folder: Path) -> Path:
    """The model ``text`` as onnxruntime writes it, its optimizations done."""
    model = parser.parse_model(text)
    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.save_model_format", "ORT")
    options.optimized_model_filepath = str(folder / "model.ort")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return folder / "model.ort"


@pytest.mark.parametrize(
    ("text", "feeds"),
    [
        (PLAIN, {"x": np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)}),
        (BRANCHES, {"x": np.array([1, -2, 3, -4], np.float32), "c": np.array(True)}),
        (BRANCHES, {"x": np.array([1, -2, 3, -4], np.float32), "c": np.array(False)}),
    ],
    ids=["fused", "then", "else"],
)
def test_results_are_those_of_onnxruntime(text: str, feeds: dict[str, Any], tmp_path: Path) -> None:
    file = as_ort(text, tmp_path)
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    theirs = session.run(None, feeds)
    made = lb.Session(lb.compile(file))(feeds)
    for value, wanted in zip(session.get_outputs(), theirs, strict=True):
        np.testing.assert_allclose(np.asarray(made[value.name]), wanted, rtol=1e-5, atol=1e-5)


def test_a_session_of_the_switch_takes_it(tmp_path: Path) -> None:
    file = as_ort(PLAIN, tmp_path)
    x = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)
    found, wanted = (kind.InferenceSession(str(file)).run(["m"], {"x": x})[0] for kind in (ours, onnxruntime))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-5)
    assert [i.name for i in ours.InferenceSession(file.read_bytes()).get_inputs()] == ["x"]


def test_one_that_is_cut_short(tmp_path: Path) -> None:
    content = as_ort(PLAIN, tmp_path).read_bytes()
    for end in (8, 20, 200, len(content) // 2):
        with pytest.raises(lb.ImportModelError, match=r"cut short|holds no graph|no ONNX model|not a valid"):
            lb.compile(content[:end])
