"""NaN and infinities where elements are compared and summed, slices past the ends, and other edges of reductions."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnxruntime
import pytest

from tests.ops.elementwise_models import KINDS
from tests.ops.float_grids import FLOATS
from tests.ops.one_node import Array, one_node, run_node

NAN, INF = np.nan, np.inf
ROWS = [(NAN, 1, 2), (1, NAN, 2), (1, 2, NAN), (NAN, NAN, NAN), (-INF, NAN, -INF), (3, 1, NAN, 5, NAN, 9, 9, INF)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("row", ROWS)
def test_nan_is_the_extreme_and_has_a_place(row: tuple[float, ...], dtype: str, target: str) -> None:
    x = np.array([row], FLOATS[dtype])
    nans = np.flatnonzero(np.isnan(x[0]))
    for op in ("ArgMax", "ArgMin"):
        for last in (0, 1):
            (found,) = run_node(op, [x], target=target, axis=1, select_last_index=last)
            assert found.item() == nans[-last], op
    (top,) = run_node("ReduceMax", [x, np.array([1])], {1}, target=target)
    assert np.isnan(top).all()
    (hard,) = run_node("Hardmax", [x], target=target)
    assert hard[0].tolist() == [float(i == nans[0]) for i in range(len(row))]
    for largest in (0, 1):
        values, places = run_node("TopK", [x, np.array([len(row)])], {1}, 2, target, largest=largest)
        order = np.argsort(-x[0] if largest else x[0], kind="stable")  # NaN last
        if largest:
            order = np.concatenate([nans, order[: len(row) - len(nans)]])
        assert places[0].tolist() == order.tolist()
        np.testing.assert_array_equal(values[0], x[0][order])
    pooled, at = run_node("MaxPool", [x[None]], (), 2, target, kernel_shape=[2])
    np.testing.assert_array_equal(x.reshape(-1)[at], pooled)


@pytest.mark.sample(3)
@pytest.mark.parametrize("row", [(-INF, -INF), (INF, 0), (INF, -INF), (NAN, 0), (-INF, 0), (1e30, 1e30), (-1e30, 3)])
def test_exponentials_of_infinities_are_onnxruntimes(row: tuple[float, ...]) -> None:
    x = np.array([row], np.float32)
    for op in ("Softmax", "LogSoftmax", "ReduceLogSumExp"):
        arrays: list[Array] = [x, np.array([1])] if op == "ReduceLogSumExp" else [x]
        model = one_node(op, arrays, {1})
        model.graph.output[0].type.tensor_type.ClearField("shape")
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(run_node(op, arrays, {1})[0], session.run(None, {"x0": x})[0], rtol=1e-6)


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("start", "end", "step"), list(product([-9, -3, -1, 0, 2, 9], [-9, -4, -1, 0, 3, 9], [-2, -1, 1, 3]))
)
def test_slices_begin_and_end_where_onnx_says(start: int, end: int, step: int) -> None:
    x = np.arange(3, dtype=np.int64)
    first, last = (v + 3 if v < 0 else v for v in (start, end))
    if step > 0:
        want = list(range(np.clip(first, 0, 3), np.clip(last, 0, 3), step))
    else:
        want = list(range(np.clip(first, 0, 2), np.clip(last, -1, 2), step))
    arrays = [x, *(np.array([v]) for v in (start, end, 0, step))]
    assert run_node("Slice", arrays, {1, 2, 3, 4})[0].tolist() == want


@pytest.mark.sample(2)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(("dtype", "columns"), [("float64", 120), ("float64", 24), ("float32", 120)])
def test_the_last_panel_of_weights_ends_with_the_result(dtype: str, columns: int, target: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, size).astype(dtype) for size in ((31, 257), (257, columns)))
    np.testing.assert_array_equal(run_node("MatMul", [a, b], {1}, target=target)[0], a @ b)


def test_scattered_halves_are_added_up_in_float32() -> None:
    indices, updates = np.zeros((4096, 1), np.int64), np.ones((4096, 1), np.float16)
    (found,) = run_node("ScatterElements", [np.zeros((1, 1), np.float16), indices, updates], axis=0, reduction="add")
    assert found.item() == 4096


def test_equal_elements_are_normalized_to_0() -> None:
    x, scale, bias = np.full((2, 1000), 0.1, np.float32), np.ones(1000, np.float32), np.zeros(1000, np.float32)
    (found,) = run_node("LayerNormalization", [x, scale, bias], {1, 2})
    assert not found.any()


@pytest.mark.sample(7)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("bounds", [{}, {"min": 0.0}, {"max": 1.0}, {"min": -1.0, "max": 1.0}], ids=str)
def test_clip_before_opset_11_has_the_ends_of_float32_for_bounds(
    bounds: dict[str, float], dtype: str, target: str
) -> None:
    x = np.array([-INF, INF, NAN, -2, 0.5, 9], dtype)
    end = min(float(np.finfo(np.float32).max), float(np.finfo(dtype).max))
    want = np.clip(x, np.array(bounds.get("min", -end), dtype), np.array(bounds.get("max", end), dtype))
    (found,) = run_node("Clip", [x], target=target, opset=10, **bounds)
    np.testing.assert_array_equal(found, want)
