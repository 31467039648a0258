"""Scatters at indices that come with the run: numpy's results, in the order of the updates, a step for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb
from landbridge.executable.kernel_facts import facts_of
from tests.selection.installed import package

Array = np.ndarray[Any, Any]
#: What each reduction does to an element, in numpy.
REDUCTIONS = {"none": lambda old, new: new, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def model(operator: str, x: Array, indices: Array, updates: Array, **attributes: object) -> ModelProto:
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}
    given = {"x": x, "i": indices, "u": updates}
    graph = helper.make_graph(
        [helper.make_node(operator, list(given), ["y"], **attributes)],
        "scatter",
        [helper.make_tensor_value_info(name, kinds[a.dtype], a.shape) for name, a in given.items()],
        [helper.make_tensor_value_info("y", kinds[x.dtype], x.shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def elements(x: Array, indices: Array, updates: Array, axis: int, reduction: str) -> Array:
    """ScatterElements, an update at a time."""
    y = x.copy()
    for at in np.ndindex(*indices.shape):
        place = (*at[:axis], int(indices[at]), *at[axis + 1 :])
        y[place] = REDUCTIONS[reduction](y[place], updates[at])
    return y


def slices(x: Array, indices: Array, updates: Array, reduction: str) -> Array:
    """ScatterND, a slice at a time."""
    y = x.copy()
    for at in np.ndindex(*indices.shape[:-1]):
        place = tuple(indices[at])
        y[place] = REDUCTIONS[reduction](y[place], updates[at])
    return y


def run(made: ModelProto, arrays: tuple[Array, ...], target: str = "llvm", **options: Any) -> Array:
    session = lb.Session(lb.compile(made, target, **options), device="cpu" if target in ("llvm", "c") else target)
    (y,) = session(*arrays)
    with y.host_view("r") as found:
        return np.array(found)


@pytest.mark.sample(5)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements(axis: int, reduction: str) -> None:
    rng = np.random.default_rng(axis)
    extents = [3, 4, 5]
    extents[axis] = 20  # more than there are places: some are updated again
    x, updates = (rng.standard_normal(s).astype(np.float32) for s in ([6, 5, 7], extents))
    indices = rng.integers(-x.shape[axis], x.shape[axis], extents)
    made = model("ScatterElements", x, indices, updates, axis=axis, reduction=reduction)
    np.testing.assert_array_equal(run(made, (x, indices, updates)), elements(x, indices, updates, axis, reduction))


@pytest.mark.sample(4)
@pytest.mark.parametrize("target", ["llvm", "c", "opencl"])
@pytest.mark.parametrize(("depth", "reduction"), [(1, "none"), (2, "add"), (3, "none")])
def test_slices(depth: int, reduction: str, target: str) -> None:
    if target == "opencl":
        package("pyopencl", "test")
    rng = np.random.default_rng(depth)
    x = rng.standard_normal((5, 6, 7)).astype(np.float32)
    updates = rng.standard_normal((4, 9, *x.shape[depth:])).astype(np.float32)
    indices = np.stack([rng.integers(-e, e, (4, 9)) for e in x.shape[:depth]], -1)
    made = model("ScatterND", x, indices, updates, reduction=reduction)
    found = run(made, (x, indices, updates), target)
    np.testing.assert_array_equal(found, slices(x, indices, updates, reduction))


def test_what_is_out_of_range_lands_nowhere() -> None:
    x, updates = np.zeros((4, 3), np.int64), np.arange(1, 61).reshape(20, 3)
    indices = np.arange(-10, 10)[:, None]
    legal = (indices[:, 0] >= -4) & (indices[:, 0] < 4)
    expected = slices(x, indices[legal], updates[legal], "none")
    made = model("ScatterND", x, indices, updates)
    np.testing.assert_array_equal(run(made, (x, indices, updates)), expected)


@pytest.mark.parametrize("count", [100, 1000])
def test_work_does_not_grow_with_the_data_times_the_updates(count: int) -> None:
    x, updates, indices = np.zeros(5000, np.float32), np.zeros(count, np.float32), np.zeros((count, 1), np.int64)
    facts = facts_of(lb.compile(model("ScatterND", x, indices, updates)))
    assert max(each.flops for each in facts.values()) < 20 * 5000
