"""A model of operators that bodies define, run by onnxruntime's own kernels and by ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import parser

import landbridge as lb

HEAD = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1, "ai.onnx.ml": 3]>'


def both(text: str, feeds: dict[str, Any], opset: int = 21) -> tuple[list[Any], list[Any]]:
    """Outputs of ours and of onnxruntime's, of the graph ``text``; initializers are inputs of ours that are known."""
    model = parser.parse_model(f"{HEAD.replace('21', str(opset))} {text}")
    return of_model(model, feeds)


def of_model(model: onnx.ModelProto, feeds: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Outputs of ours and of onnxruntime's."""
    content = model.SerializeToString()
    theirs = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, feeds)
    ours = lb.Session(lb.compile(content))(feeds)
    return [np.asarray(ours[value.name]) for value in model.graph.output], theirs


def check(text: str, feeds: dict[str, Any], atol: float = 2e-5, off: int = 0, opset: int = 21) -> None:
    """All outputs agree: floats to ``atol`` beside 1, integers to ``off``."""
    given = {name: np.asarray(value) for name, value in feeds.items()}
    for found, wanted in zip(*both(text, given, opset), strict=True):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=atol, atol=atol)
        else:
            assert np.abs(found.astype(np.int64) - wanted.astype(np.int64)).max(initial=0) <= off
