"""Operators that move elements to a shape that data decide, as functions, against ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

import landbridge as lb
from landbridge.operators import REGISTRY, HostOperator

X = np.arange(24, dtype=np.float32).reshape(4, 6)
CASES: dict[str, tuple[list[np.ndarray[Any, Any]], int, dict[str, Any]]] = {
    "Expand": ([X[:1], np.array([2, 3, 6])], 1, {}),
    "OneHot": ([np.array([[0, 2], [-1, 5]]), np.array(3), np.array([0.5, 2], np.float32)], 1, {"axis": 1}),
    "Pad": ([X, np.array([1, 0, 0, 2]), np.array(7, np.float32)], 1, {}),
    "Reshape": ([X, np.array([2, 0, -1])], 1, {}),
    "Split": ([X, np.array([1, 0, 5])], 3, {"axis": 1}),
    "Tile": ([X, np.array([2, 3])], 1, {}),
}


@pytest.mark.parametrize("op_type", CASES)
def test_as_the_reference(op_type: str) -> None:
    arrays, outputs, attributes = CASES[op_type]
    operator = REGISTRY.find(HostOperator, "", op_type, 18)
    assert operator is not None
    names = [f"x{i}" for i in range(len(arrays))]
    made = [f"y{i}" for i in range(outputs)]
    kinds = [onnx.helper.np_dtype_to_tensor_dtype(x.dtype) for x in arrays]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op_type, names, made, **attributes)],
        "g",
        [onnx.helper.make_tensor_value_info(n, k, x.shape) for n, k, x in zip(names, kinds, arrays, strict=True)],
        [onnx.helper.make_tensor_value_info(name, 1, None) for name in made],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    wanted = ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))
    for ours, theirs in zip(operator.bound(attributes)(*arrays), wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_of_opset_10_by_computed_factors(mode: str) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 10]>
        g (float[1,2,4,4] x, float[4] s) => (float[a,b,c,d] y) {{
            t = Abs (s)  y = Resize <mode = "{mode}"> (x, t) }}""")
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 4)).astype(np.float32)
    given = {"x": x, "s": np.array([1, -1, 2, 3], np.float32)}
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
    (found,) = lb.Session(lb.compile(model))(*given.values())
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
