"""Operators of ``com.microsoft`` on quantized tensors. Results lie a step apart where a float lies between two."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime

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
