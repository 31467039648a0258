"""Scatters at indices that are constants: onnxruntime's results, at one read an element."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.executable.kernel_facts import facts_of

Array = np.ndarray


def model(operator: str, x: Array, indices: Array, updates: Array, **attributes: int) -> ModelProto:
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in (("x", x), ("u", updates))]
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "i", "u"], ["y"], **attributes)],
        "scatter",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)],
        [numpy_helper.from_array(indices.astype(np.int64), "i")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def check(made: ModelProto, x: Array, updates: Array) -> None:
    (expected,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x, "u": updates})
    (found,) = lb.Session(lb.compile(made))(x, updates)
    np.testing.assert_array_equal(np.asarray(found), expected)


def noise(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 30))
def test_elements(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(e) for e in rng.integers(1, 7, rng.integers(1, 4)))
    axis = int(rng.integers(-len(shape), len(shape)))
    given_shape = [int(rng.integers(1, e + 1)) for e in shape]
    given_shape[axis] = int(rng.integers(1, 9))  # more than there are: of several updates the last counts
    x, updates = noise(rng, *shape), noise(rng, *given_shape)
    indices = rng.integers(-shape[axis], shape[axis], given_shape)
    check(model("ScatterElements", x, indices, updates, axis=axis), x, updates)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 30))
def test_slices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(e) for e in rng.integers(1, 7, rng.integers(1, 4)))
    depth = int(rng.integers(1, len(shape) + 1))
    outer = tuple(int(e) for e in rng.integers(1, 5, rng.integers(0, 3)))
    x, updates = noise(rng, *shape), noise(rng, *outer, *shape[depth:])
    indices = np.stack([rng.integers(-e, e, outer) for e in shape[:depth]], -1)
    check(model("ScatterND", x, indices, updates), x, updates)


@pytest.mark.parametrize("count", [10, 1000])
def test_work_does_not_grow_with_the_updates(count: int) -> None:
    rng = np.random.default_rng(0)
    x, updates = noise(rng, 5000), noise(rng, count)
    facts = facts_of(lb.compile(model("ScatterND", x, rng.permutation(5000)[:count, None], updates)))
    assert max(each.flops for each in facts.values()) < 20 * 5000
