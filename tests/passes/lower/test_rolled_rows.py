"""Long stages after a reduction are emitted once for several rows, and results are those of the unrolled form."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import landbridge as lb
from landbridge.passes.lower import nest_emitter

RNG = np.random.default_rng(0)


def model(m: int, k: int, n: int, epilogue: str) -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["": 18]> g (float[{m}, {k}] x) => (float[{m}, {n}] y)'
    made = parser.parse_model(f"{text} {{ p = MatMul (x, w) {epilogue} }}")
    made.graph.initializer.append(numpy_helper.from_array(RNG.standard_normal((k, n)).astype(np.float32), "w"))
    return made


def code_bytes(executable: lb.Executable) -> int:
    return sum(len(each.image.code) for each in executable.modules)


TANH = "t = Tanh (p) e = Exp (t) y = Add (e, p)"


@pytest.fixture(autouse=True)
def without_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", "0")


@pytest.mark.sample(4)
@pytest.mark.parametrize("target", ["llvm", "llvm -vector-bits=128 -vector-registers=32"])
@pytest.mark.parametrize("epilogue", ["s = Sigmoid (p) y = Mul (p, s)", TANH])
@pytest.mark.parametrize(("m", "n"), [(13, 48), (37, 50), (64, 16), (61, 32)])
def test_results_are_those_without_a_loop(
    m: int, n: int, epilogue: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, x = model(m, 24, n, epilogue), RNG.standard_normal((m, 24)).astype(np.float32)
    rolled = np.array(lb.Session(lb.compile(made, target), num_threads=1)(x))
    monkeypatch.setattr(nest_emitter, "rolls_rows", lambda *_: False)
    unrolled = np.array(lb.Session(lb.compile(made, target), num_threads=1)(x))
    assert rolled.tobytes() == unrolled.tobytes()


@pytest.mark.parametrize(("epilogue", "is_shorter"), [(TANH, True), ("y = Relu (p)", False)])
def test_long_stages_alone_are_a_loop(epilogue: str, is_shorter: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made, target = model(13, 24, 48, epilogue), "llvm -mcpu=x86-64-v4"
    found = code_bytes(lb.compile(made, target))
    monkeypatch.setattr(nest_emitter, "rolls_rows", lambda *_: False)
    unrolled = code_bytes(lb.compile(made, target))
    assert found < unrolled if is_shorter else found == unrolled
