"""TensorScatter against numpy: caches of several ranks, positions of each sequence, the end and beyond."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

import landbridge as lb

Array = np.ndarray[Any, Any]


def model(feeds: dict[str, Array], shape: Any, **attributes: object) -> ModelProto:
    kinds = {name: helper.np_dtype_to_tensor_dtype(a.dtype) for name, a in feeds.items()}
    shapes: dict[str, Any] = {n: a.shape for n, a in feeds.items()} | {"cache": shape}
    inputs = [helper.make_tensor_value_info(n, kinds[n], s) for n, s in shapes.items()]
    node = helper.make_node("TensorScatter", list(feeds), ["y"], **attributes)
    outputs = [helper.make_tensor_value_info("y", kinds["cache"], shape)]
    graph = helper.make_graph([node], "cache", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)


def written(feeds: dict[str, Array], axis: int, circular: bool) -> Array:
    y, length = feeds["cache"].copy(), feeds["cache"].shape[axis]
    for batch in range(len(y)):
        start = int(feeds["starts"][batch]) if "starts" in feeds else 0
        for number in range(feeds["update"].shape[axis]):
            at = (start + number) % length if circular else start + number
            if 0 <= at < length:
                one = (batch, *[slice(None)] * (axis % y.ndim - 1))
                y[(*one, at)] = feeds["update"][(*one, number)]
    return y


@pytest.mark.sample(7)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize(("shape", "axis"), [((3, 2, 7, 5), -2), ((3, 7, 4), 1), ((2, 3, 9), -1)])
def test_positions(shape: tuple[int, ...], axis: int, dtype: type, mode: str, target: str) -> None:
    """Positions at the end go on from the first with ``circular``, and are dropped without."""
    rng = np.random.default_rng(1)
    new = list(shape)
    new[axis] = 3
    feeds = {"cache": rng.integers(-9, 9, shape).astype(dtype), "update": rng.integers(-9, 9, new).astype(dtype)}
    session = None
    for starts in ([0, 2, 4], [5, 6, 20], [-1, 1, -50]):
        feeds["starts"] = np.array(starts[: shape[0]])
        session = session or lb.Session(lb.compile(model(feeds, shape, axis=axis, mode=mode), target))
        (found,) = session(*feeds.values())
        np.testing.assert_array_equal(np.asarray(found), written(feeds, axis, mode == "circular"))


def test_no_positions() -> None:
    """Without positions the update is written from the first on."""
    feeds = {"cache": np.zeros((2, 6, 4), np.float32), "update": np.ones((2, 2, 4), np.float32)}
    (found,) = lb.Session(lb.compile(model(feeds, (2, 6, 4))))(*feeds.values())
    np.testing.assert_array_equal(np.asarray(found), written(feeds, -2, False))


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_open_length(mode: str) -> None:
    """One program for caches of any length, also one that the update does not fit."""
    feeds = {
        "cache": np.zeros((2, 6, 4), np.float32),
        "update": np.ones((2, 2, 4), np.float32),
        "starts": np.array([1, 5]),
    }
    session = lb.Session(lb.compile(model(feeds, (2, "T", 4), mode=mode), dims={"T": "1..64"}))
    for length in (6, 1, 9):
        feeds["cache"] = np.full((2, length, 4), length, np.float32)
        (found,) = session(*feeds.values())
        np.testing.assert_array_equal(np.asarray(found), written(feeds, -2, mode == "circular"))


def test_a_length_that_may_be_0_does_not_go_round() -> None:
    feeds = {"cache": np.zeros((2, 6, 4), np.float32), "update": np.ones((2, 2, 4), np.float32)}
    with pytest.warns(lb.FallbackWarning):
        program = lb.compile(model(feeds, (2, "T", 4), mode="circular"), dims={"T": "0..64"})
    (found,) = lb.Session(program)(*feeds.values())
    np.testing.assert_array_equal(np.asarray(found), written(feeds, -2, True))
