"""Tests of Relu, run by ``test_tested_by`` alone: one compares what Relu makes, the others do not."""

from __future__ import annotations

import numpy as np
import onnx

import landbridge as lb


def _run(op_type: str) -> np.ndarray:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] y) {{ y = {op_type}(x) }}'
    (y,) = lb.Session(lb.compile(onnx.parser.parse_model(text)))(np.ones(3, np.float32))
    return np.asarray(y)


def test_compares() -> None:
    assert _run("Relu").tolist() == [1, 1, 1]


def test_shape() -> None:
    assert _run("Relu").shape == (3,)


def test_other() -> None:
    assert _run("Neg").tolist() == [-1, -1, -1]


def test_raises() -> None:
    _run("Relu")
    raise ValueError("before")
