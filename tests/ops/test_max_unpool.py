"""MaxUnpool as a kernel, beside onnxruntime's."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from tests.ops.one_node_peer import Array, found_and_wanted, model_of


def _feeds(n: int, channels: int, rows: int, columns: int) -> dict[str, Array]:
    rng = np.random.default_rng(rows)
    size = n * channels * 4 * rows * columns
    places = rng.choice(size, (n, channels, rows, columns), replace=False)
    return {"x": rng.standard_normal(places.shape).astype(np.float32), "i": places}


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 4, 5), (1, 5, 7, 3)])
def test_values_are_those_of_onnxruntime(shape: tuple[int, ...], target: str) -> None:
    n, channels, rows, columns = shape
    dims = f"{n},{channels},{rows},{columns}"
    model = model_of(
        f"(float[{dims}] x, int64[{dims}] i) => (float[N,C,P,Q] y) "
        "{ y = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(x, i) }",
        17,
    )
    found, want = found_and_wanted(model, _feeds(n, channels, rows, columns), target=target)
    np.testing.assert_array_equal(found, want)


def test_of_equal_places_the_last_counts_and_others_outside_are_left_out() -> None:
    model = model_of(
        "(float[1,1,2,2] x, int64[1,1,2,2] i) => (float[1,1,4,4] y) "
        "{ y = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(x, i) }",
        17,
    )
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    (found,) = lb.Session(lb.compile(model))(x, np.array([[[[5, 5], [-1, 16]]]]))
    assert np.asarray(found).reshape(-1).tolist() == [0.0] * 5 + [2.0] + [0.0] * 10


def test_a_larger_result_is_0_behind_the_other() -> None:
    model = model_of(
        "(float[1,2,2,3] x, int64[1,2,2,3] i) => (float[1,2,5,8] y) "
        "{ y = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(x, i, shape) }",
        17,
        {"shape": np.array([1, 2, 5, 8])},
    )
    feeds = _feeds(1, 2, 2, 3)
    (found,) = lb.Session(lb.compile(model))(feeds["x"], feeds["i"])
    plain = np.zeros(48, np.float32)
    plain[feeds["i"].reshape(-1)] = feeds["x"].reshape(-1)
    want = np.zeros((1, 2, 5, 8), np.float32)
    want[:, :, :4, :6] = plain.reshape(1, 2, 4, 6)
    np.testing.assert_array_equal(np.asarray(found), want)


def test_extents_may_be_open() -> None:
    model = model_of(
        "(float[N,3,H,W] x, int64[N,3,H,W] i) => (float[N,3,P,Q] y) "
        "{ y = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(x, i) }",
        17,
    )
    session = lb.Session(lb.compile(model))
    for shape in ((1, 3, 2, 2), (2, 3, 5, 4)):
        feeds = _feeds(*shape)
        _, want = found_and_wanted(model, feeds)
        np.testing.assert_array_equal(np.asarray(session(feeds["x"], feeds["i"])[0]), want)
