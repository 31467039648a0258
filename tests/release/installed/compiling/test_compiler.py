"""The compiler, from one thread and from many."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
from onnx import parser

import landbridge as lb

TEXT = """<ir_version: 8, opset_import: ["": 18]> g (float[n, 16] x) => (float[n, 16] y) {
    w = Constant <value = float[16] {WEIGHTS}> ()
    a = Mul (x, w)
    b = Relu (a)
    y = Softmax (b)
}"""


def model(seed: int) -> tuple[onnx.ModelProto, np.ndarray]:
    weights = np.random.default_rng(seed).standard_normal(16).astype(np.float32)
    text = TEXT.replace("WEIGHTS", ", ".join(map(repr, weights.tolist())))
    return parser.parse_model(text), weights


def check(executable: lb.Executable, weights: np.ndarray) -> None:
    session = lb.Session(executable)
    for rows in (1, 3, 8):
        x = np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32)
        e = np.exp(np.maximum(x.astype(np.float64) * weights, 0))
        np.testing.assert_allclose(session(x)[0], e / e.sum(-1, keepdims=True), rtol=1e-5)


def test_a_model() -> None:
    compiled, weights = model(0)
    check(lb.compile(compiled), weights)


def test_models_by_many_threads_at_once() -> None:
    def work(seed: int) -> None:
        compiled, weights = model(seed)
        check(lb.compile(compiled), weights)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work, seed) for seed in range(8)]:
            future.result(300)


def test_a_compile_leaves_the_lock_as_it_is() -> None:
    """In a build without the lock LLVM's package may bring it back; then it is in a process of its own."""
    code = (
        "import sys, landbridge as lb; from onnx import parser; "
        "lb.compile(parser.parse_model(sys.argv[1])); print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    )
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[4] x) => (float[4] y) { y = Relu (x) }'
    done = subprocess.run([sys.executable, "-c", code, text], capture_output=True, text=True)
    free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    assert (done.returncode, done.stdout.split()) == (0, [str(not free)]), done.stderr


def test_the_commands(tmp_path: Path) -> None:
    compiled, weights = model(0)
    onnx.save(compiled, tmp_path / "model.onnx")
    command = [sys.executable, "-m", "landbridge", "compile", str(tmp_path / "model.onnx"), "-o"]
    subprocess.run([*command, str(tmp_path / "model.lbx")], check=True, capture_output=True)
    check(lb.load(tmp_path / "model.lbx"), weights)
