"""Operators that ONNX defines by others, against its stored results, its reference and onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

import landbridge as lb
from landbridge.targets import Target
from tests.ops import node_cases

#: The stored results of others are of random numbers, of sizes that are computed, or of inputs that are sequences.
WITH_CASES = (
    "Attention", "CenterCropPad", "DynamicQuantizeLinear", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss",
)  # fmt: skip


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", node_cases.names(WITH_CASES, "_expanded"))
def test_stored_results(name: str) -> None:
    node_cases.check(name, Target("llvm"))


@pytest.mark.parametrize("op_type", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(op_type: str, periodic: int) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[10] x) => (float[10] y) <int64 size = {{10}}> {{
            w = {op_type} <periodic = {periodic}> (size)  y = Mul (x, w) }}""")
    x = np.linspace(1, 2, 10, dtype=np.float32)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    (found,) = lb.Session(lb.compile(model))(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("corners", [0, 1])
def test_grids_of_known_sizes(corners: int) -> None:
    """ONNX's function is replaced by a definition, which has lone pixels too."""
    model = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 20]>
        g (float[2,2,3] theta) => (float[2,3,5,2] y) <int64[4] size = {{2, 1, 3, 5}}> {{
            y = AffineGrid <align_corners = {corners}> (theta, size) }}""")
    theta = np.random.default_rng(0).standard_normal((2, 2, 3)).astype(np.float32)
    (wanted,) = ReferenceEvaluator(model).run(None, {"theta": theta})
    (found,) = lb.Session(lb.compile(model))(theta)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_function_of_the_elements_of_a_sequence() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2, 3] a, float[4, 3] b, float[3] c) => (float[6, 3] y) {
            s = SequenceConstruct (a, b)
            t = SequenceMap (s, c) <body = body (float[n, 3] e, float[3] f) => (float[n, 3] r) { r = Mul (e, f) }>
            y = ConcatFromSequence <axis = 0> (t) }""")
    rng = np.random.default_rng(0)
    shapes = {"a": (2, 3), "b": (4, 3), "c": (3,)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    (found,) = lb.Session(lb.compile(model))(*feeds.values())
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
@pytest.mark.parametrize(("dtype", "made"), [("float", 1), ("double", 11), ("float16", 9), ("float", 7)])
def test_draws_by_probability(dtype: str, made: int) -> None:
    """Of 8000 draws each, the shares are the probabilities to within 5 standard deviations."""
    kind = onnx.helper.tensor_dtype_to_np_dtype(made)
    result = {1: "float", 7: "int64", 9: "bool", 11: "double"}[made]
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g ({dtype}[8000, 4] p) => ({result}[8000, 4] y) {{ y = Bernoulli <seed = 3.0, dtype = {made}> (p) }}""")
    shares = np.array([0.0, 0.25, 0.7, 1.0]).astype({"float": "f4", "double": "f8", "float16": "f2"}[dtype])
    (found,) = lb.Session(lb.compile(model))(np.tile(shares, (8000, 1)))
    drawn = np.asarray(found)
    assert drawn.dtype == kind and np.isin(drawn, (0, 1)).all()
    np.testing.assert_allclose(drawn.mean(0), shares, atol=5 * (0.25 / 8000) ** 0.5)
    assert np.all(drawn.mean(0)[[0, 3]] == [0, 1])
