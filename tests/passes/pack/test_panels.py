"""Products of one row: weights lie in the order in which they are read, and results are numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.selection.installed import package

import landbridge as lb
from landbridge.executable.kernel_facts import facts_of


def product(rows: int, terms: int, columns: int) -> tuple[ModelProto, np.ndarray]:
    w = np.random.default_rng(terms + columns).standard_normal((terms, columns)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Relu", ["t"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, terms))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, columns))],
        [numpy_helper.from_array(w, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), w


@pytest.mark.sample(7)
@pytest.mark.parametrize("target", ["llvm", "llvm -vector-bits=256 -vector-registers=16", "c", "opencl"])
@pytest.mark.parametrize("columns", [16, 64, 125, 400, 1000, 77])
def test_results_are_numpys(target: str, columns: int) -> None:
    if target == "opencl":
        package("pyopencl", "test")
    made, w = product(1, 33, columns)
    x = np.random.default_rng(0).standard_normal((1, 33)).astype(np.float32)
    executable = lb.compile(made, target)
    (y,) = lb.Session(executable, device="opencl" if target == "opencl" else "cpu")(x)
    expected = np.maximum(x.astype(np.float64) @ w, 0)
    with y.host_view("r") as found:
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@settings(max_examples=15, deadline=None)
@given(terms=st.integers(1, 70), columns=st.integers(1, 300), rows=st.integers(1, 2))
def test_any_shape(terms: int, columns: int, rows: int) -> None:
    made, w = product(rows, terms, columns)
    x = np.random.default_rng(0).standard_normal((rows, terms)).astype(np.float32)
    (y,) = lb.Session(lb.compile(made))(x)
    expected = np.maximum(x.astype(np.float64) @ w, 0)
    np.testing.assert_allclose(np.asarray(y), expected, atol=1e-5 * max(np.abs(expected).max(), 1.0))


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(1, 100), terms=st.integers(1, 40), columns=st.integers(1, 70))
@example(rows=40, terms=64, columns=46)
@example(rows=41, terms=8, columns=16)
@example(rows=40, terms=64, columns=1)
def test_weights_at_the_left_are_of_any_number_of_rows(rows: int, terms: int, columns: int) -> None:
    made, _ = product(rows, terms, columns)
    w = np.random.default_rng(rows).standard_normal((rows, terms)).astype(np.float32)
    x = np.random.default_rng(1).standard_normal((terms, columns)).astype(np.float32)
    graph = helper.make_graph(
        made.graph.node,
        "left",
        [helper.make_tensor_value_info("w", TensorProto.FLOAT, x.shape)],
        made.graph.output,
        [numpy_helper.from_array(w, "x")],
    )
    (y,) = lb.Session(lb.compile(helper.make_model(graph, opset_imports=made.opset_import, ir_version=8)))(x)
    expected = np.maximum(w.astype(np.float64) @ x, 0)
    np.testing.assert_allclose(np.asarray(y), expected, atol=1e-5 * max(np.abs(expected).max(), 1.0))


@pytest.mark.parametrize(("columns", "vectors"), [(512, 8), (400, 5), (1000, 8), (96, 6)])
def test_a_step_reads_a_row_of_one_panel(columns: int, vectors: int) -> None:
    made, _ = product(1, 64, columns)
    (facts,) = facts_of(lb.compile(made, "llvm -vector-bits=512 -vector-registers=32")).values()
    assert facts.schedule.startswith(f"1x{vectors} block of 16 lanes")


def test_equal_constants_of_a_node_are_one() -> None:
    rng, hidden, steps = np.random.default_rng(0), 32, 9
    weights = {"w": (1, 4 * hidden, 8), "r": (1, 4 * hidden, hidden), "b": (1, 8 * hidden)}
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in weights.items()}
    graph = helper.make_graph(
        [helper.make_node("LSTM", ["x", *weights], ["y"], hidden_size=hidden)],
        "lstm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (steps, 1, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (steps, 1, 1, hidden))],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    constants = lb.compile(made).constants.values()
    assert sum(array.nbytes for array in constants) <= 2.5 * sum(array.nbytes for array in arrays.values())
