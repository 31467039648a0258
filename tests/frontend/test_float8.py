"""Weights of float8: taken out of their scales when the model is compiled, as onnxruntime has them."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import CompileError

KINDS = {
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8_e5m2": TensorProto.FLOAT8E5M2,
    "float8_e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "float8_e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
}
X = np.random.default_rng(0).standard_normal((3, 4), np.float32)
WEIGHTS = [300.0, -1.5, 0.0, 0.01, 2.25, -70000.0, 448.0, -0.001, 12.0, 0.3, -0.7, 1e-9]


def model(nodes: str, *weights: TensorProto) -> ModelProto:
    made = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float[3,4] x) => (float[3,4] y) {{ {nodes} y = Add(d, x) }}'
    )
    made.graph.initializer.extend(weights)
    return made


def check(proto: ModelProto) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (found,) = lb.Session(lb.compile(proto))(X)
    np.testing.assert_allclose(np.asarray(found), session.run(None, {"x": X})[0], rtol=1e-6)


@pytest.mark.sample(7)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("has_zero", [False, True])
def test_scaled_weights(kind: int, axis: int | None, has_zero: bool) -> None:
    shape = [] if axis is None else [X.shape[axis]]
    scales = numpy_helper.from_array(np.full(shape, 0.25, np.float32), "s")
    zeros = helper.make_tensor("z", kind, shape, [0.0] * int(np.prod(shape)))
    weights = helper.make_tensor("w", kind, X.shape, WEIGHTS)
    attributes = "" if axis is None else f"<axis = {axis}>"
    given = "w, s, z" if has_zero else "w, s"
    check(model(f"d = DequantizeLinear {attributes} ({given})", weights, scales, *([zeros] if has_zero else [])))


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_weights_that_are_cast_or_moved(kind: int) -> None:
    narrow = helper.make_tensor("w", kind, X.shape, WEIGHTS)
    wide = numpy_helper.from_array(np.float32(WEIGHTS).reshape(X.shape), "w")
    zero = helper.make_tensor("z", kind, [], [0.0])
    scale = numpy_helper.from_array(np.float32(0.5), "s")
    check(model("d = Cast <to = 1> (w)", narrow))
    check(model(f"n = Cast <to = {kind}> (w) d = Cast <to = 1> (n)", wide))
    check(model("q = QuantizeLinear (w, s, z) d = DequantizeLinear (q, s)", wide, scale, zero))
    shape = numpy_helper.from_array(np.int64([3, 4]), "k")
    check(model("t = Transpose (w) r = Reshape (t, k) d = DequantizeLinear (r, s)", narrow, scale, shape))


@pytest.mark.parametrize("name", KINDS)
def test_where_there_is_no_code_the_type_has_one_name(name: str) -> None:
    proto = model(f"n = Cast <to = {KINDS[name]}> (x) d = Cast <to = 1> (n)")
    with pytest.raises(CompileError, match=f"'{name}' cannot be compiled"):
        lb.compile(proto)
    wrong = model("r = Abs (w) d = Cast <to = 1> (r)", helper.make_tensor("w", KINDS[name], X.shape, WEIGHTS))
    with pytest.raises(CompileError, match=f"operand 'X' is {name}; legal at this opset: bfloat16, float16"):
        lb.compile(wrong)
