"""Lists of axes or extents that exporters write as a number without axes: they are lists of one."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper

import landbridge as lb
from landbridge.errors import CompileError

X = np.random.default_rng(0).standard_normal((2, 1, 3), np.float32)
#: Nodes of ``x`` and a number, what they give, and whether onnxruntime takes such a constant.
CASES = (
    ("Unsqueeze", 0, X[None], True),
    ("Unsqueeze", -1, X[..., None], True),
    ("Expand", 3, X, True),
    ("Squeeze", 1, X[:, 0], False),
    ("ReduceSum", 2, X.sum(2, keepdims=True), False),
    ("ReduceMax", -1, X.max(2, keepdims=True), False),
    ("ReduceMean", 0, X.mean(0, keepdims=True), False),
)


def model(op: str, number: int, *, is_input: bool, of_constant: bool = False) -> ModelProto:
    proto = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> g (float[2,1,3] x{", int64 n" if is_input else ""}) => (float[] y) '
        f"{{ a = {op} ({'w' if of_constant else 'x'}, n) {'b = ReduceSum <keepdims = 0> (x) ' if of_constant else ''}"
        f"y = {'Add (a, b)' if of_constant else 'Identity (a)'} }}"
    )
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    if not is_input:
        proto.graph.initializer.append(numpy_helper.from_array(np.int64(number), "n"))
    if of_constant:
        proto.graph.initializer.append(numpy_helper.from_array(X, "w"))
    return proto


@pytest.mark.parametrize(("op", "number", "wanted", "is_known"), CASES)
@pytest.mark.parametrize("is_input", [False, True])
def test_a_number_is_a_list_of_one(op: str, number: int, wanted: np.ndarray, is_known: bool, is_input: bool) -> None:
    proto = model(op, number, is_input=is_input)
    program = lb.compile(proto, constants={"n": number}) if is_input else lb.compile(proto)
    (found,) = lb.Session(program)(X)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)
    if is_known and not is_input:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        (reference,) = session.run(None, {"x": X})
        np.testing.assert_array_equal(np.asarray(found), reference)


@pytest.mark.parametrize(("op", "number", "wanted", "is_known"), CASES)
def test_so_it_is_of_constants(op: str, number: int, wanted: np.ndarray, is_known: bool) -> None:
    (found,) = lb.Session(lb.compile(model(op, number, is_input=False, of_constant=True)))(X)
    np.testing.assert_allclose(np.asarray(found), wanted + X.sum(), rtol=1e-5)


def test_a_number_that_is_no_axis_is_refused() -> None:
    with pytest.raises(CompileError, match=r"axes is \[4\]; legal"):
        lb.compile(model("Unsqueeze", 4, is_input=False))
