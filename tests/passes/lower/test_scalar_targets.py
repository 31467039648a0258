"""Targets whose vectors have one lane: they compile, and give what others do."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import landbridge as lb

TARGETS = [
    "llvm -vector-bits=32",
    "llvm -vector-bits=32 -vector-registers=4",
    "c -vector-bits=32 -vector-registers=16",
]
#: Shapes whose last tile is not full, in one or several axes.
PRODUCTS = [(m, k, n) for m in (1, 4, 8) for k in (5, 8) for n in (1, 5, 16)]
GRAPHS = {
    "softmax": "(float[8,5] a) => (float[8,5] y) { y = Softmax(a) }",
    "window": """(float[1,3,9,9] a, float[8,3,3,3] b) => (float[1,8,9,9] y) {
        y = Conv<pads = [1, 1, 1, 1]>(a, b) }""",
    "depthwise": """(float[1,8,9,9] a, float[8,1,3,3] b) => (float[1,8,9,9] y) {
        y = Conv<pads = [1, 1, 1, 1], group = 8>(a, b) }""",
    "pool": "(float[1,8,9,9] a) => (float[1,8,4,4] y) { y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(a) }",
    "moved": "(float[8,5] a) => (float[5,8] y) { y = Transpose(a) }",
    "bytes": "(int8[8,5] a, int8[5,4] b) => (int32[8,4] y) { y = MatMulInteger(a, b) }",
    "halves": "(float16[8,5] a, float16[5,5] b) => (float16[8,5] y) { y = MatMul(a, b) }",
    "largest": "(float[8,5] a) => (int64[8,1] y) { y = ArgMax<axis = 1>(a) }",
    "chosen": "(bool[8,5] c, float[8,5] a, float[8,5] b) => (float[8,5] y) { y = Where(c, a, b) }",
    **{
        f"{m}x{k}x{n}": f"(float[{m},{k}] a, float[{k},{n}] b) => (float[{m},{n}] y) {{ y = MatMul(a, b) }}"
        for m, k, n in PRODUCTS
    },
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", GRAPHS)
def test_one_lane_gives_what_the_reference_gives(name: str, target: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> g {GRAPHS[name]}')
    rng = np.random.default_rng(0)
    feeds: dict[str, np.ndarray[Any, Any]] = {}
    for value in model.graph.input:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        numbers = rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(0, 2, shape)
        feeds[value.name] = numbers.astype(dtype)
    session = lb.Session(lb.compile(model, target))
    for input, array in feeds.items():
        session.set_input(input, array)
    session.run()
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    # a sum of up to 27 products of about 1, in another order; float16 keeps 11 bits of it
    bound = 4e-3 if expected.dtype == np.float16 else 4e-6
    np.testing.assert_allclose(np.array(session.get_output(0)), expected, rtol=bound, atol=bound)
