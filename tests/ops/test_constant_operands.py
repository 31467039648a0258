"""Arithmetic with constants that look like no operation, or like a known result: zeros, ones, infinities, NaN."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from onnx import helper

import landbridge as lb
from tests.ops.elementwise_models import KINDS, Array, target_of
from tests.ops.one_node import run_node

OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
}
CONSTANTS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
VALUES = [0.0, -0.0, 1.0, -1.0, 1e-7, 6e4, np.inf, -np.inf, np.nan]


@pytest.mark.sample(4)
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
        is_number = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(found[is_number]), np.signbit(want[is_number]), err_msg=f"{pairs[i]}")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("channels", [1, 3])
def test_constants_of_one_channel_are_those_of_several(dtype: str, channels: int) -> None:
    """A factor of one channel is a scalar of the body, and in the dtype in which a tensor of factors would be read."""
    rng = np.random.default_rng(channels)
    x = rng.normal(size=(2, channels, 3, 5)).astype(dtype)
    scale, bias, mean, variance = rng.uniform(0.5, 2, (4, channels)).astype(dtype)
    (found,) = run_node("BatchNormalization", [x, scale, bias, mean, variance], constants=(1, 2, 3, 4), opset=15)
    factor, shift, center, spread = (a.astype(np.float64).reshape(-1, 1, 1) for a in (scale, bias, mean, variance))
    epsilon = float(np.float32(1e-5))  # as the attribute holds it
    expected = (x.astype(np.float64) - center) / np.sqrt(spread + epsilon) * factor + shift
    # two operations with factors in float32, or in x's dtype where that is wider, and one rounding to x's
    bound = np.finfo(dtype).eps * (np.abs(expected) + 8 if dtype != "float16" else np.abs(expected) + 0.01)
    assert found.dtype == x.dtype
    assert (np.abs(found.astype(np.float64) - expected) <= bound).all()
