"""TopK of rows that are long enough for groups, against a stable sort and onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from tests.ops.elementwise_models import KINDS
from tests.ops.one_node import Array, one_node, run_node

DTYPES = ["float32", "float16", "float64", "int8", "uint8", "int32", "int64", "uint64"]
#: Shape, axis, k: groups of several levels, with rests and without, of one row and of many, and none.
SHAPES = [
    ((1000,), 0, 5),
    ((2, 3, 517), -1, 7),
    ((300, 3), 0, 30),
    ((2, 260, 3), 1, 1),
    ((129,), 0, 16),
    ((2, 150), 1, 150),
    ((1, 200), 1, 0),
    ((1, 2100), 1, 60),
    # A network sorts all, or the first of groups and what the chosen ones have; few of an axis before others are kept.
    ((300,), 0, 300),
    ((2, 3, 517), -1, 400),
    ((1, 3000), 1, 300),
    ((2, 40, 5, 7), 1, 3),
]


def _values(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Numbers of which many are equal, the extremes of their type among them; of floats also NaN and both zeros."""
    random = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        some = np.array([0.0, -0.0, 1.5, -np.inf, np.inf, np.nan, np.finfo(kind).max, -1], kind)
        ends = random.standard_normal(shape).astype(kind)
    else:
        some = np.array([0, 1, 2, np.iinfo(kind).min, np.iinfo(kind).max], kind)
        ends = random.integers(0, 100, shape).astype(kind)
    return np.where(random.random(shape) < 0.5, random.choice(some, shape), ends)


def _sorted(x: Array, axis: int, k: int, largest: int) -> tuple[Array, Array]:
    """By a stable sort of the numbers of distinct values, of which NaN has the largest."""
    values = np.unique(x, return_inverse=True)[1].reshape(x.shape)
    order = np.argsort(-values if largest else values, axis, kind="stable").take(range(k), axis)
    return np.take_along_axis(x, order, axis), order


def _check(x: Array, axis: int, k: int, largest: int, target: str, threads: int = 1) -> None:
    values, places = run_node(
        "TopK", [x, np.array([k])], {1}, 2, target, threads=threads, axis=axis, largest=largest, sorted=k % 2
    )
    want, order = _sorted(x, axis, k, largest)
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, want)


@pytest.mark.sample(3, rarer=3)
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis", "k"), SHAPES)
def test_elements_come_in_order_and_equal_ones_by_position(
    shape: tuple[int, ...], axis: int, k: int, dtype: str, largest: int
) -> None:
    _check(_values(shape, dtype, 5), axis, k, largest, "llvm", threads=1 + k % 2)


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", [kind for kind in KINDS if kind != "llvm"])
@pytest.mark.parametrize(
    ("shape", "axis", "k"), [((2, 140), 1, 2), ((150, 2), 0, 9), ((2, 150), 1, 140), ((1, 7, 20), 1, 2)]
)
def test_targets_agree(shape: tuple[int, ...], axis: int, k: int, target: str) -> None:
    for largest in (0, 1):
        _check(_values(shape, "float32", 6), axis, k, largest, target)


@pytest.mark.parametrize("k", [0, 9])
def test_extents_may_be_open(k: int) -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[a, b] x) => (float[a, m] y, int64[a, m] i) '
        f"<int64[1] k = {{{k}}}> {{ y, i = TopK(x, k) }}"
    )
    session = lb.Session(lb.compile(made, dims={"b": f"{max(k, 1)}.."}), num_threads=1)
    for shape in ((2, 9), (1, 31), (3, 70_001), (2, 500)):
        x = _values(shape, "float32", 9)
        values, places = (np.asarray(y) for y in session(x))
        want, order = _sorted(x, 1, k, 1)
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, want)


@pytest.mark.sample(2)
@pytest.mark.parametrize("x", [np.zeros(400), np.arange(400.0), -np.arange(400.0), np.full(400, np.nan)])
def test_rows_that_are_in_order_already(x: Array) -> None:
    for largest in (0, 1):
        _check(x.astype(np.float32), 0, 9, largest, "llvm")


@pytest.mark.parametrize("dims", [{"b": "1..9000", "k": "1..50"}, {}])
def test_extents_and_counts_may_be_open(dims: dict[str, str]) -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[a, b] x, int64[1] k) => (float[n, m] y, int64[n, m] i) '
        "{ y, i = TopK(x, k) }"
    )
    session = lb.Session(lb.compile(made, dims=dims), num_threads=1)
    peer = onnxruntime.InferenceSession(made.SerializeToString())
    random = np.random.default_rng(7)
    for rows, extent, k in [(1, 1, 1), (3, 2, 2), (2, 50, 50), (2, 50, 49), (1, 9000, 50), (2, 777, 1), (4, 131, 20)]:
        x = random.integers(-40, 40, (rows, extent)).astype(np.float32)
        ours = session(x, np.array([k]))
        for got, want in zip(ours, peer.run(None, {"x": x, "k": np.array([k])}), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)


def test_long_rows_are_no_work_of_their_square() -> None:
    """The square of this extent, 4e10, would take a minute."""
    x = np.random.default_rng(8).standard_normal((1, 200_000)).astype(np.float32)
    model = one_node("TopK", [x, np.array([40])], {1}, 2)
    values, places = (np.asarray(y) for y in lb.Session(lb.compile(model), num_threads=1)(x))
    want, order = _sorted(x, 1, 40, 1)
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, want)
