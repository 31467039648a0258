"""Programs and packages that import onnxruntime by that name, unchanged, on Landbridge."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
from onnx import parser

NETWORK = '<ir_version: 8, opset_import: ["": 18]> n (float[N, 4] x) => (float[N, 4] y) { y = Relu (x) }'
PROGRAM = """
import sys
import numpy as np
import onnxruntime as ort
from onnxruntime import InferenceSession, SessionOptions
from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi.onnxruntime_inference_collection import Session
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

session = InferenceSession(sys.argv[1], SessionOptions())
assert isinstance(session, Session) and C.InvalidArgument is InvalidArgument
print(__name__, ort.__name__, session.run(None, {"x": np.full((2, 4), -1, np.float32)})[0].tolist())
try:
    session.run(None, {"x": np.zeros((2, 5), np.float32)})
except C.InvalidArgument as error:
    print("refused")
"""


def written(folder: Path) -> tuple[str, str]:
    """The program and its model as files."""
    onnx.save(parser.parse_model(NETWORK), folder / "model.onnx")
    (folder / "program.py").write_text(PROGRAM)
    return str(folder / "program.py"), str(folder / "model.onnx")


def python(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, cwd=cwd)


def test_a_program_as_it_is(tmp_path: Path) -> None:
    done = python("-m", "landbridge.onnxruntime", *written(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == [
        "__main__ landbridge.onnxruntime [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]",
        "refused",
    ]


def test_a_module_as_it_is(tmp_path: Path) -> None:
    _, model = written(tmp_path)
    done = python("-m", "landbridge.onnxruntime", "-m", "program", model, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "refused" in done.stdout


def test_without_a_program_the_usage_is_reported(tmp_path: Path) -> None:
    for arguments in ((), ("--version",), (str(tmp_path / "missing.py"),)):
        done = python("-m", "landbridge.onnxruntime", *arguments)
        assert done.returncode == 1 and "usage: python -m landbridge.onnxruntime" in done.stderr
    assert "missing.py is not there" in done.stderr


def test_who_has_onnxruntime_already_is_reported(tmp_path: Path) -> None:
    code = "import onnxruntime, landbridge.onnxruntime as ort\nort.install_as_onnxruntime()"
    done = python("-c", code)
    assert done.returncode == 1 and "RuntimeError: onnxruntime is imported already" in done.stderr
    twice = "import landbridge.onnxruntime as ort\nort.install_as_onnxruntime()\nort.install_as_onnxruntime()"
    assert python("-c", twice).returncode == 0
