"""Operators of ``com.microsoft`` on quantized tensors. Results lie a step apart where a float lies between two."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.executable.instructions import Call
from tests.frontend.bodies.against_onnxruntime import check

R = np.random.default_rng(0)
FACTS: dict[str, Any] = {
    "s": np.float32(0.05),
    "t": np.float32(0.03),
    "u": np.float32(0.08),
    "z": np.uint8(110),
    "v": np.uint8(20),
}
GIVEN = "float s, float t, float u, uint8 z, uint8 v"


def codes(*shape: int) -> np.ndarray:
    return R.integers(0, 256, shape).astype(np.uint8)


def test_of_elements() -> None:
    check(
        f"""g (uint8[N, 6] a, uint8[N, 6] b, bool[N, 6] w, {GIVEN})
            => (uint8[N, 6] p, uint8[N, 6] q, uint8[N, 6] r, uint8[N, 6] l, uint8[N, 6] m, uint8[N, 12] c,
            uint8[N, 6] o) {{
            p = com.microsoft.QLinearAdd (a, s, z, b, t, v, u, z)
            q = com.microsoft.QLinearMul (a, s, z, b, t, v, u, v)
            r = com.microsoft.QLinearSigmoid (a, s, z, t, v)
            l = com.microsoft.QLinearLeakyRelu <alpha = 0.1> (a, s, z, u, z)
            m = com.microsoft.QLinearSoftmax <axis = 1, opset = 13> (a, s, z, t, v)
            c = com.microsoft.QLinearConcat <axis = 1> (u, z, a, s, z, b, t, v)
            o = com.microsoft.QLinearWhere (w, a, s, z, b, t, v, u, z) }}""",
        {"a": codes(4, 6), "b": codes(4, 6), "w": R.integers(0, 2, (4, 6)).astype(bool), **FACTS},
        off=1,
    )


def test_of_images() -> None:
    check(
        f"""g (uint8[N, 4, 6, 6] a, uint8[N, 6, 6, 4] b, {GIVEN})
            => (uint8[N, 4, 1, 1] p, uint8[N, 1, 1, 4] q, uint8[N, 4, 3, 3] r) {{
            p = com.microsoft.QLinearGlobalAveragePool <channels_last = 0> (a, s, z, u, v)
            q = com.microsoft.QLinearGlobalAveragePool <channels_last = 1> (b, s, z, u, v)
            r = com.microsoft.QLinearAveragePool <kernel_shape = [2, 2], strides = [2, 2]> (a, s, z, u, v) }}""",
        {"a": codes(2, 4, 6, 6), "b": codes(2, 6, 6, 4), **FACTS},
        off=1,
    )


def test_products() -> None:
    check(
        f"""g (uint8[N, 8] a, uint8[5, 8] b, int32[5] c, {GIVEN}) => (float[N, 5] p, uint8[N, 5] q) {{
            p = com.microsoft.QGemm <transB = 1, alpha = 1.5> (a, s, z, b, t, v, c)
            q = com.microsoft.QGemm <transB = 1> (a, s, z, b, t, v, c, u, z) }}""",
        {"a": codes(3, 8), "b": codes(5, 8), "c": R.integers(-999, 999, 5).astype(np.int32), **FACTS},
        off=1,
    )


def test_a_part_of_the_same_scale_is_moved() -> None:
    """Of parts of a QLinearConcat those are quantized anew whose scale or zero point is not the result's."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (uint8[2, 6] a, uint8[2, 6] b, uint8[2, 6] d) => (uint8[2, 18] c)
        <float u = {0.08}, float s = {0.05}, uint8 z = {110}, uint8 v = {20}> {
            c = com.microsoft.QLinearConcat <axis = 1> (u, z, a, s, z, b, u, z, d, u, v) }""")
    parts = [codes(2, 6) for _ in "abd"]
    program = lb.compile(model)
    quantized = [i.name for i in program.main.instructions if isinstance(i, Call) and "quantize" in i.function]
    assert len(quantized) == 2
    (found,) = lb.Session(program)(*parts)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(np.asarray(found), session.run(None, dict(zip("abd", parts, strict=True)))[0])


def test_to_steps_and_back() -> None:
    check(
        """g (float[3, 4] x, float s, uint8 z, float[4] u, uint8[4] v)
            => (uint8[3, 4] p, float[3, 4] q, uint8[3, 4] r, float[3, 4] t) {
            p = com.microsoft.QuantizeLinear (x, s, z)
            q = com.microsoft.DequantizeLinear (p, s, z)
            r = com.microsoft.QuantizeLinear <axis = 1> (x, u, v)
            t = com.microsoft.DequantizeLinear <axis = 1> (r, u, v) }""",
        {
            "x": R.standard_normal((3, 4)).astype(np.float32),
            "s": np.float32(0.03),
            "z": np.uint8(110),
            "u": np.array([0.01, 0.02, 0.05, 0.03], np.float32),
            "v": np.array([100, 110, 120, 130], np.uint8),
        },
    )


@pytest.mark.parametrize("last", [0, 1])
def test_convolutions(last: int) -> None:
    given, made = ("2, 6, 6, 4", "2, 4, 4, 5") if last else ("2, 4, 6, 6", "2, 5, 4, 4")
    weights = ", ".join(map(str, codes(180)))
    check(
        f"""g (uint8[{given}] a, float s, uint8 z, float u, uint8 v) => (uint8[{made}] y)
            <uint8[5, 4, 3, 3] w = {{{weights}}}, float r = {{0.01}}, uint8 k = {{120}},
            int32[5] b = {{100, -200, 300, 0, 5}}> {{
            y = com.microsoft.QLinearConv <channels_last = {last}> (a, s, z, w, r, k, u, v, b) }}""",
        {"a": codes(*map(int, given.split(", "))), **{name: FACTS[name] for name in "szv"}, "u": np.float32(0.2)},
        off=1,
    )


def test_what_onnxruntime_has_no_kernels_of() -> None:
    """QLinearReduceMean and MulInteger, of which it has schemas: in numbers, by numpy."""
    x, y = codes(3, 4, 5), codes(3, 4, 5)
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (uint8[3, 4, 5] x, uint8[3, 4, 5] y, {GIVEN}) => (uint8[3, 1, 5] m, int32[3, 4, 5] p) {{
            m = com.microsoft.QLinearReduceMean <axes = [1], keepdims = 1> (x, s, z, t, v)
            p = com.microsoft.MulInteger (x, z, y, v) }}""")
    feeds = {name: np.asarray(value) for name, value in {"x": x, "y": y, **FACTS}.items()}
    results = lb.Session(lb.compile(model))(feeds)
    mean, product = np.asarray(results["m"]), np.asarray(results["p"])
    numbers = (x.astype(np.float64) - 110) * 0.05
    wanted = np.clip(np.rint(numbers.mean(1, keepdims=True) / 0.03) + 20, 0, 255)
    assert mean.shape == (3, 1, 5) and mean.dtype == np.uint8
    assert np.abs(mean.astype(np.int64) - wanted).max() <= 1
    np.testing.assert_array_equal(product, (x.astype(np.int32) - 110) * (y.astype(np.int32) - 20))
