"""Products of ``com.microsoft``."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.frontend.bodies.against_onnxruntime import check, of_model

R = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return R.standard_normal(shape).astype(np.float32)


def test_operands_are_transposed_and_results_scaled() -> None:
    check(
        """g (float[2, 3, 4, 5] a, float[2, 3, 6, 5] b, float[4, 2, 3, 5] c)
            => (float[2, 3, 4, 6] p, float[2, 3, 5, 5] q, float[2, 3, 4, 6] r) {
            p = com.microsoft.FusedMatMul <alpha = 0.25, transB = 1> (a, b)
            q = com.microsoft.FusedMatMul <transA = 1> (a, a)
            r = com.microsoft.FusedMatMul <transBatchA = 1, transB = 1, alpha = 2.0> (c, b) }""",
        {"a": floats(2, 3, 4, 5), "b": floats(2, 3, 6, 5), "c": floats(4, 2, 3, 5)},
    )


def test_activations_follow() -> None:
    check(
        """g (float[N, 5] x, float[4, 5] w, float[4] b, float[I, 3, 7, 7] i, float[6, 3, 3, 3] k, float[6] c,
            float[I, 6, 7, 7] z)
            => (float[N, 4] p, float[N, 4] q, float[I, 6, 7, 7] r, float[I, 6, 7, 7] s, float[I, 6, 5, 5] t) {
            p = com.microsoft.FusedGemm <transB = 1, alpha = 0.5, activation = "Relu"> (x, w, b)
            q = com.microsoft.FusedGemm <transB = 1, activation = "LeakyRelu", activation_alpha = 0.2> (x, w)
            r = com.microsoft.FusedConv <pads = [1, 1, 1, 1], activation = "Relu"> (i, k, c, z)
            s = com.microsoft.FusedConv
                <pads = [1, 1, 1, 1], activation = "HardSigmoid", activation_params = [0.2, 0.5]> (i, k, c)
            t = com.microsoft.FusedConv <activation = "Clip", activation_params = [-0.5, 2.0]> (i, k) }""",
        {
            "x": floats(3, 5),
            "w": floats(4, 5),
            "b": floats(4),
            "i": floats(2, 3, 7, 7),
            "k": floats(6, 3, 3, 3),
            "c": floats(6),
            "z": floats(2, 6, 7, 7),
        },
    )


def test_quantized_weights() -> None:
    weights = R.integers(0, 255, (8, 6)).astype(np.uint8)
    check(
        """g (float[N, 8] x, uint8[8, 6] w, float[1] s, uint8[1] z, float[6] b, uint8[N, 8] q, float t, uint8 u)
            => (float[N, 6] p, float[N, 6] r) {
            p = com.microsoft.DynamicQuantizeMatMul (x, w, s, z, b)
            r = com.microsoft.MatMulIntegerToFloat (q, w, t, s, u, z, b) }""",
        {
            "x": floats(3, 8),
            "w": weights,
            "s": np.array([0.02], np.float32),
            "z": np.array([120], np.uint8),
            "b": floats(6),
            "q": R.integers(0, 255, (3, 8)).astype(np.uint8),
            "t": np.float32(0.1),
            "u": np.uint8(9),
        },
    )


@pytest.mark.parametrize(("bits", "zeros"), [(4, True), (4, False), (8, True)])
def test_weights_of_a_few_bits_in_blocks(bits: int, zeros: bool) -> None:
    depth, columns, block = 80, 24, 32
    blocks = 3
    given = {
        "B": R.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8),
        "s": np.abs(floats(columns * blocks)),
    }
    if zeros:
        given["z"] = R.integers(0, 256, columns * -(-blocks * bits // 8)).astype(np.uint8)
    node = helper.make_node(
        "MatMulNBits", ["x", *given], ["y"], domain="com.microsoft", K=depth, N=columns, bits=bits, block_size=block
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", depth])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", columns])],
        [numpy_helper.from_array(value, name) for name, value in given.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    x = floats(5, depth)
    (found,), (wanted,) = of_model(helper.make_model(graph, opset_imports=opsets, ir_version=10), {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_a_product_by_its_former_name() -> None:
    check(
        """g (float[3, 5, 4] a, float[3, 6, 5] b) => (float[3, 4, 6] p) {
            p = com.microsoft.TransposeMatMul <alpha = 0.5, transA = 1, transB = 1> (a, b) }""",
        {"a": floats(3, 5, 4), "b": floats(3, 6, 5)},
    )


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_rows_of_a_quantized_table(bits: int, has_zeros: bool) -> None:
    rows, columns, block = 7, 64, 16
    stored = {
        "d": R.integers(0, 256, (rows, columns * bits // 8)).astype(np.uint8),
        "s": (R.random((rows, columns // block)) * 0.1 + 0.01).astype(np.float32),
        "z": R.integers(0, 256, (rows, columns // block * bits // 8)).astype(np.uint8),
    }
    if not has_zeros:
        del stored["z"]
    at = np.array([[0, 3], [6, 2]])
    node = helper.make_node(
        "GatherBlockQuantized", ["d", "i", *[name for name in stored if name != "d"]], ["y"], domain="com.microsoft",
        bits=bits, block_size=block, gather_axis=0, quantize_axis=1,
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("i", TensorProto.INT64, at.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (*at.shape, columns))],
        [numpy_helper.from_array(array, name) for name, array in stored.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    (found,), (wanted,) = of_model(helper.make_model(graph, opset_imports=opsets, ir_version=10), {"i": at})
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
