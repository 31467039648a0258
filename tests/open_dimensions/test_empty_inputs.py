"""Inputs without elements, and inputs that say sizes of 0 or ends below it, against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.errors import ShapeError
from tests.open_dimensions.test_recurrent import HIDDEN, check, open_network
from tests.ops.recurrent_models import GATES, feeds_of

Array = np.ndarray[Any, Any]


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')


def expect_as_onnxruntime(model: onnx.ModelProto, feeds: Sequence[Sequence[Array]]) -> None:
    session = lb.Session(lb.compile(model), num_threads=1)
    peer = onnxruntime.InferenceSession(model.SerializeToString())
    for arrays in feeds:
        expected = peer.run(None, dict(zip([i.name for i in model.graph.input], arrays, strict=True)))
        for found, wanted in zip(session(*arrays), expected, strict=True):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6, strict=True)


def noise(*shape: int) -> Array:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


#: Graphs with extents ``N`` and ``M``, whose input is N x M x 4.
EXTENTS = {
    "elements": "y = Relu(x)",
    "product": "w = Constant<value = float[4, 2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}>() y = MatMul(x, w)",
    "sum": "i = Constant<value_ints = [0]>() y = ReduceSum<keepdims = 0>(x, i)",
    "flat": "i = Constant<value_ints = [-1, 4]>() y = Reshape(x, i)",
    "size": "n = Size(x) y = Cast<to = 1>(n)",
    "softmax": "y = Softmax<axis = 1>(x)",
    "both": "t = Transpose<perm = [1, 0, 2]>(x) a = Shape(t) y = Expand(x, a)",
    "joined": "y = Concat<axis = 1>(x, x)",
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", EXTENTS)
def test_extents_may_be_zero(name: str) -> None:
    rank = {"flat": 2, "sum": 2, "size": 0}.get(name, 3)
    shape = ", ".join(f"y{i}" for i in range(rank))
    output = f"float[{shape}] y" if rank else "float y"
    model = parsed(f"(float[N, M, 4] x) => ({output}) {{ {EXTENTS[name]} }}")
    sizes = [(1, 1), (0, 0)] if name == "both" else [(3, 2), (0, 2), (3, 0), (0, 0), (5, 7)]
    expect_as_onnxruntime(model, [[noise(n, m, 4)] for n, m in sizes])


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("inputs", "body", "values"),
    [
        ("int64[1] k", "y, i = TopK(x, k)", [[2], [0], [5]]),
        ("int64[1] k", "i = Constant<value_ints = [0]>() y = Slice(x, i, k)", [[3], [0], [-1], [-9], [99]]),
        ("int64[1] k", "i = Constant<value_ints = [99]>() y = Slice(x, k, i)", [[3], [0], [-2], [-9], [99]]),
        ("int64[2] k", "y = Tile(x, k)", [[1, 2], [0, 2], [3, 0]]),
        ("int64[2] k", "y = ConstantOfShape(k)", [[1, 2], [0, 2], [3, 0]]),
        ("int64[2] k", "y = Expand(x, k)", [[2, 5], [0, 1]]),
    ],
)
def test_elements_may_be_zero_or_below(inputs: str, body: str, values: list[list[int]]) -> None:
    rows = 1 if "Expand" in body else 6
    model = parsed(f"(float[n, 5] x, {inputs}) => (float[a, b] y) {{ {body} }}")
    if "Expand" in body:
        model = parsed(f"(float[1, 5] x, {inputs}) => (float[a, b] y) {{ {body} }}")
    if "ConstantOfShape" in body:
        model = parsed(f"({inputs}) => (float[a, b] y) {{ {body} }}")
    given = [] if "ConstantOfShape" in body else [noise(rows, 5)]
    expect_as_onnxruntime(model, [[*given, np.array(value)] for value in values])


@pytest.mark.sample(3)
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("kind", GATES)
def test_networks_of_no_step_and_of_nobody(kind: str, states: bool) -> None:
    """onnxruntime ends its process for some of these; its rows whose length is 0 say what is left of no step."""
    model = open_network(kind, states)
    session = lb.Session(lb.compile(model), num_threads=1)
    check(model, session, 4, 2)
    with_lengths = open_network(kind, states, lengths=True)
    feeds = feeds_of(with_lengths, 1, 2)
    feeds["lens"][:] = 0
    _, *ends = onnxruntime.InferenceSession(with_lengths.SerializeToString()).run(None, feeds)
    y, *found = map(np.asarray, session(*feeds_of(model, 0, 2).values()))
    assert y.shape == (0, 2, 2, HIDDEN)
    for each, wanted in zip(found, ends, strict=True):
        np.testing.assert_array_equal(each, wanted)
    y, *found = map(np.asarray, session(*feeds_of(model, 4, 0).values()))
    assert (y.shape, {each.shape for each in found}) == ((4, 2, 0, HIDDEN), {(2, 0, HIDDEN)})


@pytest.mark.parametrize("rows", ["0", "n"])
def test_nothing_takes_any_shape_with_a_zero(rows: str) -> None:
    """onnxruntime refuses these inputs where an extent that is 0 comes after others; numpy takes them."""
    body = "y = Reshape<allowzero = 1>(x, k)"
    model = parsed(f"(float[{rows}, 3, 4] x, int64[3] k) => (float[a, b, c] y) {{ {body} }}")
    session = lb.Session(lb.compile(model), num_threads=1)
    for shape in ([3, 4, 0], [0, 2, 5], [70000, 0, 70000], [0, 0, 0]):
        (found,) = session(noise(0, 3, 4), np.array(shape))
        assert np.asarray(found).shape == tuple(shape)
    if rows == "n":
        x = noise(2, 3, 4)
        np.testing.assert_array_equal(np.asarray(session(x, np.array([4, 3, 2]))[0]), x.reshape(4, 3, 2))
    with pytest.raises(ShapeError, match="the number of elements is 6"):
        session(noise(0, 3, 4), np.array([1, 2, 3]))


def test_what_is_declared_stays() -> None:
    session = lb.Session(lb.compile(parsed("(float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }"), dims={"N": "1..9"}))
    with pytest.raises(ShapeError, match=r"axis 0 of input 'x' is 0; legal: N, with N in 1\.\.9"):
        session(noise(0, 4))
