"""Long sums: errors against float64 beside onnxruntime's, and one order of additions wherever an element stands."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import landbridge as lb

Array = np.ndarray


def model(node: NodeProto, x: Array, w: Array, y: tuple[int, ...]) -> ModelProto:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)]
    graph = helper.make_graph([node], "sums", inputs, outputs, [numpy_helper.from_array(w, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mean_error(found: Array, exact: Array) -> float:
    return float(np.abs(found - exact).mean() / np.abs(exact).mean())


def ours(made: ModelProto, x: Array) -> Array:
    (y,) = lb.Session(lb.compile(made))(x)
    return np.asarray(y)


def theirs(made: ModelProto, x: Array) -> Array:
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {"x": x})
    return y


def drawn(kind: str, *shape: int) -> Array:
    rng = np.random.default_rng(shape[-1])
    return (rng.random(shape) if kind == "positive" else rng.standard_normal(shape)).astype(np.float32)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["positive", "normal"])
@pytest.mark.parametrize(("rows", "terms", "columns"), [(17, 513, 48), (32, 1024, 64), (32, 4096, 64), (1, 4096, 512)])
def test_products_are_as_exact_as_onnxruntimes(kind: str, rows: int, terms: int, columns: int) -> None:
    x, w = drawn(kind, rows, terms), drawn(kind, terms, columns)
    made = model(helper.make_node("MatMul", ["x", "w"], ["y"]), x, w, (rows, columns))
    exact = x.astype(np.float64) @ w.astype(np.float64)
    assert mean_error(ours(made, x), exact) <= 2 * mean_error(theirs(made, x), exact)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["positive", "normal"])
@pytest.mark.parametrize(("channels", "kernel", "size"), [(512, 3, 9), (2048, 1, 7), (64, 3, 14)])
def test_convolutions_are_as_exact_as_onnxruntimes(kind: str, channels: int, kernel: int, size: int) -> None:
    x, w = drawn(kind, 1, channels, size, size), drawn(kind, 32, channels, kernel, kernel)
    pad = kernel // 2
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[pad] * 4)
    made = model(node, x, w, (1, 32, size, size))
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
    exact = np.einsum("nchwij,ocij->nohw", seen, w.astype(np.float64))
    assert mean_error(ours(made, x), exact) <= 2 * mean_error(theirs(made, x), exact)


@pytest.mark.parametrize(("rows", "terms", "columns"), [(37, 700, 61), (1, 5000, 19), (15, 300, 100)])
def test_equal_terms_have_equal_sums_in_tails_too(rows: int, terms: int, columns: int) -> None:
    x = np.repeat(drawn("normal", 1, terms), rows, axis=0)
    w = np.repeat(drawn("normal", terms, 1), columns, axis=1)
    made = model(helper.make_node("MatMul", ["x", "w"], ["y"]), x, w, (rows, columns))
    assert len(np.unique(ours(made, x))) == 1


@pytest.mark.parametrize("kind", ["positive", "normal"])
@pytest.mark.parametrize("shape,axis", [((3, 5000), 1), ((5000, 3), 0), ((20, 600, 40), 1)])
def test_running_sums_are_as_exact_as_onnxruntimes(shape: tuple[int, ...], axis: int, kind: str) -> None:
    x = drawn(kind, *shape)
    made = model(helper.make_node("CumSum", ["x", "w"], ["y"]), x, np.array(axis), shape)
    exact = x.astype(np.float64).cumsum(axis)
    assert mean_error(ours(made, x), exact) <= 2 * mean_error(theirs(made, x), exact)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["positive", "normal"])
@pytest.mark.parametrize(
    ("shape", "sizes", "axes"),
    [
        ((1, "N"), (1, 500_000), (1,)),
        (("N", 8), (500_000, 8), (0,)),
        ((3, "N", "M"), (3, 700, 700), (1, 2)),
        ((1, 500_000), (1, 500_000), (1,)),
    ],
)
def test_long_sums_are_exact_whether_open_or_not(
    shape: tuple[int | str, ...], sizes: tuple[int, ...], axes: tuple[int, ...], kind: str
) -> None:
    x = drawn(kind, *sizes)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * (len(shape) - len(axes)))]
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    graph = helper.make_graph([node], "sum", inputs, outputs, [numpy_helper.from_array(np.array(axes), "axes")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    wide = x.astype(np.float64)
    magnitude = np.abs(wide).sum(axes)
    # 256 additions to an accumulator, as many blocks and what they are made of: 1e-6 is 16 roundings that agree.
    assert np.max(np.abs(ours(made, x) - wide.sum(axes)) / magnitude) <= 1e-6
