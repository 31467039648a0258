"""Elementwise operators where the node tests are silent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import helper

from tests.frontend.models import model, run, value

TYPES = [np.int8, np.int32, np.int64, np.uint8, np.uint32]


@pytest.mark.parametrize("dtype", TYPES)
def test_integer_division_never_traps(dtype: type) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    a = np.array([low, high, 7, low], dtype)
    b = np.array([-1 if low else 1, 0, 0, 1], dtype)
    kind = helper.np_dtype_to_tensor_dtype(a.dtype)
    for op in ("Div", "Mod"):
        m = model(
            [helper.make_node(op, ["a", "b"], ["y"])],
            [value("a", [4], kind), value("b", [4], kind)],
            [value("y", [4], kind)],
        )
        (y,) = run(m, a=a, b=b)
        expected = [low, high, 7, low] if op == "Div" else [0, 0, 0, 0]
        np.testing.assert_array_equal(y, np.array(expected, dtype))


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=3), st.integers(0, 2**31))
def test_broadcasting_is_numpys(shapes: hnp.BroadcastableShapes, seed: int) -> None:
    rng = np.random.default_rng(seed)
    condition, a, b = (rng.normal(size=s).astype(np.float32) for s in shapes.input_shapes)
    m = model(
        [helper.make_node("Where", ["q", "a", "b"], ["y"])],
        [value("q", condition.shape, 9), value("a", a.shape), value("b", b.shape)],
        ["y"],
    )
    (y,) = run(m, q=condition > 0, a=a, b=b)
    np.testing.assert_array_equal(y, np.where(condition > 0, a, b))
