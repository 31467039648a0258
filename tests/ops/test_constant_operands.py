"""Arithmetic with constants that look like no operation, or like a known result: zeros, ones, infinities, NaN."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from onnx import helper

import landbridge as lb
from tests.ops.elementwise_models import KINDS, Array, target_of

OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
}
CONSTANTS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
VALUES = [0.0, -0.0, 1.0, -1.0, 1e-7, 6e4, np.inf, -np.inf, np.nan]


@pytest.mark.sample(20)
@pytest.mark.parametrize(("kind", "dtype", "op"), list(product(KINDS, ["float32", "float64", "float16"], OPERATIONS)))
def test_no_special_number_is_folded_away(kind: str, dtype: str, op: str) -> None:
    """Every constant on either side, and the input with itself: one model, an output for each."""
    x = np.resize(np.array(VALUES, dtype), 5 * len(VALUES))
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    scalars = [helper.make_tensor(f"c{i}", element, [], np.array(c, dtype).tobytes(), raw=True)
               for i, c in enumerate(CONSTANTS)]  # fmt: skip
    pairs = [(f"c{i}", "x") for i in range(len(CONSTANTS))] + [("x", f"c{i}") for i in range(len(CONSTANTS))]
    pairs.append(("x", "x"))
    nodes = [helper.make_node(op, pair, [f"y{i}"]) for i, pair in enumerate(pairs)]
    outputs = [helper.make_tensor_value_info(f"y{i}", element, x.shape) for i in range(len(pairs))]
    graph = helper.make_graph(nodes, op, [helper.make_tensor_value_info("x", element, x.shape)], outputs, scalars)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    target, device = target_of(kind)
    session = lb.Session(lb.compile(model, target), **({} if device is None else {"device": device}))
    session.set_input("x", x)
    session.run()
    given = {"x": x} | {f"c{i}": np.array(c, dtype) for i, c in enumerate(CONSTANTS)}
    for i, (a, b) in enumerate(pairs):
        found = np.array(session.get_output(i).to_device("cpu"))
        with np.errstate(all="ignore"):
            want = OPERATIONS[op](given[a], given[b])
        np.testing.assert_array_equal(found, want, err_msg=f"{op}({given[a].flat[0]}, {given[b].flat[0]})")
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(want[numbers]), err_msg=f"{pairs[i]}")
