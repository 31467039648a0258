"""Profiles and optimized models: the files that options ask for are there."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import landbridge as lb
import landbridge.onnxruntime as ours
from landbridge.errors import LandbridgeError
from tests.onnxruntime.both import both

NETWORK = """<ir_version: 8, opset_import: ["": 18], producer_name: "test", model_version: 3>
network (float[N, 4] x) => (float[N, 2] y) <float[4, 2] w = {1, -2, 3, 0.5, -1, 2, 0.25, 1}> {
    same = Identity (x)  unused = Exp (x)  o = MatMul (same, w)  y = Relu (o)
}"""
CONTENT = parser.parse_model(NETWORK).SerializeToString()
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def opened(onnxruntime: ModuleType, content: Any = CONTENT, **fields: Any) -> Any:
    options = onnxruntime.SessionOptions()
    for name, value in fields.items():
        setattr(options, name, value)
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def test_a_profile_has_runs_and_kernels(tmp_path: Path) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        prefix = str(tmp_path / onnxruntime.__name__)
        session = opened(onnxruntime, enable_profiling=True, profile_file_prefix=prefix)
        for _ in range(2):
            session.run(None, {"x": X})
        name = session.end_profiling()
        assert name.startswith(f"{prefix}_") and name.endswith(".json")
        events = json.loads(Path(name).read_text())
        for event in events:
            assert event["ph"] == "X" and event["dur"] >= 0 and event["ts"] >= 0 and event["pid"] and event["tid"]
        assert any(event["cat"] == "Node" and event["name"].endswith("_kernel_time") for event in events)
        assert session.get_profiling_start_time_ns() > 10**18
        return [[event["name"] for event in events].count("model_run"), session.end_profiling()]

    both(program)


def test_without_profiling_there_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    both(lambda onnxruntime: opened(onnxruntime).end_profiling())
    assert not list(tmp_path.iterdir())


def test_a_profile_that_nobody_ends_is_written(tmp_path: Path) -> None:
    session = opened(ours, enable_profiling=True, profile_file_prefix=str(tmp_path / "p"))
    session.run(None, {"x": X})
    del session
    gc.collect()
    (file,) = tmp_path.iterdir()
    assert "model_run" in file.read_text()


def test_the_optimized_model_is_onnx(tmp_path: Path) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        file = tmp_path / f"{onnxruntime.__name__}.onnx"
        opened(onnxruntime, optimized_model_filepath=str(file))
        model = onnx.load(file)
        onnx.checker.check_model(model)
        left = {node.op_type for node in model.graph.node}
        assert "Identity" not in left and (onnxruntime is not ours or "Exp" not in left)
        return opened(onnxruntime, str(file)).run(None, {"x": X})

    both(program)


def test_the_optimized_model_has_replaced_initializers(tmp_path: Path) -> None:
    options = ours.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "m.onnx")
    options.add_initializer("w", ours.OrtValue.ortvalue_from_numpy(np.zeros((4, 2), np.float32)))
    ours.InferenceSession(CONTENT, options)
    (y,) = opened(ours, str(tmp_path / "m.onnx")).run(None, {"x": X})
    assert not y.any()


def test_the_optimized_model_as_ir(tmp_path: Path) -> None:
    opened(ours, optimized_model_filepath=str(tmp_path / "m.mlir"))
    text = (tmp_path / "m.mlir").read_text()
    assert "func.func @main" in text and "matmul" in text
    with pytest.warns(UserWarning):  # whose constants are made up
        lb.compile(tmp_path / "m.mlir")


def test_the_optimized_model_as_program(tmp_path: Path) -> None:
    file = tmp_path / "m.lbx"
    first = opened(ours, optimized_model_filepath=str(file))
    for content in (str(file), file.read_bytes()):
        again = opened(ours, content)
        assert again.get_inputs() == first.get_inputs() and again.get_outputs() == first.get_outputs()
        assert again.get_modelmeta() == first.get_modelmeta()
        np.testing.assert_array_equal(again.run(None, {"x": X})[0], first.run(None, {"x": X})[0])
    assert lb.load(file).main.inputs[0].name == "x"


def test_any_program_opens(tmp_path: Path) -> None:
    lb.compile(onnx.load_from_string(CONTENT), dims={"N": 3}).save(tmp_path / "m.lbx")
    session = opened(ours, tmp_path / "m.lbx")
    assert [(each.name, each.type, each.shape) for each in session.get_inputs()] == [("x", "tensor(float)", [3, 4])]
    assert session.run(None, {"x": X})[0].shape == (3, 2)
    (tmp_path / "m.lbx").write_bytes((tmp_path / "m.lbx").read_bytes()[:-100])
    with pytest.raises(LandbridgeError):
        opened(ours, tmp_path / "m.lbx")


def test_an_optimized_model_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(LandbridgeError, match=r"legal: \.lbx, the compiled program"):
        opened(ours, optimized_model_filepath=str(tmp_path / "m.ort"))
    with pytest.raises(LandbridgeError, match="optimized_model_filepath"):
        opened(ours, optimized_model_filepath=str(tmp_path / "none" / "m.onnx"))
