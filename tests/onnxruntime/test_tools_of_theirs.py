"""Packages of an installed onnxruntime that change models, under the swap: theirs, on sessions of ours."""

from __future__ import annotations

from pathlib import Path

from tests.onnxruntime.test_installed import python

PROGRAM = """
import sys
from pathlib import Path
import numpy as np
import onnx
from onnx import parser
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
import onnxruntime.tools, onnxruntime.transformers
from onnxruntime.transformers.onnx_model import OnnxModel
from onnxruntime.capi import onnxruntime_pybind11_state
import landbridge.onnxruntime as ours
import landbridge.onnxruntime.capi.onnxruntime_pybind11_state as state

assert onnxruntime is ours and onnxruntime_pybind11_state is state
assert state.__spec__.name == "landbridge.onnxruntime.capi.onnxruntime_pybind11_state"
assert "site-packages" in onnxruntime.quantization.__file__

text = '<ir_version: 8, opset_import: ["": 18]> n (float[N, 4] x) => (float[N, 2] y) '
text += '<float[4, 2] w = {1, -2, 3, 0.5, -1, 2, 0.25, 1}> { o = MatMul (x, w)  y = Relu (o) }'
onnx.save(parser.parse_model(text), "m.onnx")
x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


class Reader(CalibrationDataReader):
    def __init__(self):
        self.left = [{"x": x}]

    def get_next(self):
        return self.left.pop() if self.left else None


quant_pre_process("m.onnx", "p.onnx")
quantize_dynamic("p.onnx", "d.onnx", weight_type=QuantType.QUInt8)
quantize_static("p.onnx", "s.onnx", Reader())
plain = onnxruntime.InferenceSession("m.onnx").run(None, {"x": x})[0]
for name in ("p", "d", "s"):
    found = onnxruntime.InferenceSession(f"{name}.onnx").run(None, {"x": x})[0]
    assert np.allclose(found, plain, atol=0.1), name
try:
    import onnxruntime.no_such_thing
except ModuleNotFoundError:
    print("done")
"""
WITHOUT = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] == "onnxruntime" else find(name, *rest)
import landbridge.onnxruntime as ort
ort.install_as_onnxruntime()
import onnxruntime
try:
    import onnxruntime.quantization
except ModuleNotFoundError as error:
    print(error)
"""


def test_their_tools_run_sessions_of_ours(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = python("-m", "landbridge.onnxruntime", "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split()[-1] == "done"


def test_without_their_package_the_way_out_is_reported() -> None:
    done = python("-c", WITHOUT)
    assert "pip install onnxruntime" in done.stdout, done.stderr[-2000:]
