"""Operators and former versions of them that ONNX's suite has no cases of, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)


def compare(opset: int, given: str, made: str, body: str, **inputs: np.ndarray[Any, Any]) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g ({given}) => ({made}) {{ {body} }}'
    )
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    found = lb.Session(lb.compile(model))(*inputs.values())
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.sample(5)
@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_axes_from_one_on_are_one(op_type: str, axis: int) -> None:
    """Before opset 13 these are of a matrix, whose columns are all axes from ``axis`` on."""
    body = f"y = {op_type} <axis = {axis}> (x)"
    compare(11, "float[2, 3, 4, 5] x", "float[2, 3, 4, 5] y", body, x=X)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_pools_and_norms_of_powers(p: int) -> None:
    body = f"y = GlobalLpPool <p = {p}> (x)"
    compare(17, "float[2, 3, 4, 5] x", "float[2, 3, 1, 1] y", body, x=X)


def test_negation_of_truth() -> None:
    compare(17, "bool[4, 5] x", "bool[4, 5] y", "y = Not (x)", x=X[0, 0] > 0)
