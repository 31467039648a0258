"""Forms of files that models of wheels have, against onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb


def expected(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def test_inputs_of_which_each_has_a_name_for_its_batch() -> None:
    """As tf2onnx names them: what is concatenated along another axis is of one batch."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[unk__1,4] x, float[unk__2,3] y, float[unk__3,2] z) => (float[unk__4,9] w) {
            r = Relu(y)
            w = Concat<axis=1>(x, r, z)
        }"""
    )
    executable = lb.compile(model)
    assert list(executable.dimensions) == ["unk__1"]
    session = lb.Session(executable)
    rng = np.random.default_rng(0)
    for batch in (1, 5, 17):
        feeds = {name: rng.standard_normal((batch, n)).astype(np.float32) for name, n in (("x", 4), ("y", 3), ("z", 2))}
        np.testing.assert_array_equal(session(feeds)["w"], expected(model, feeds)[0])
    with pytest.raises(lb.ShapeError, match="2 by axis 0 of input 'x' and 3 by axis 0 of input 'y'"):
        session({"x": np.zeros((2, 4), "f4"), "y": np.zeros((3, 3), "f4"), "z": np.zeros((2, 2), "f4")})


def test_a_dimension_that_is_asked_for_keeps_its_name() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[a,4] x, float[b,3] y) => (float[c,7] w) { w = Concat<axis=1>(x, y) }"""
    )
    assert list(lb.compile(model, dims={"b": "1..8"}).dimensions) == ["b"]


def test_a_table_of_positions_is_cut_to_an_open_length() -> None:
    table = np.random.default_rng(1).standard_normal((1, 64, 8)).astype(np.float32)
    graph = onnx.parser.parse_graph(
        """g (float[1,seq,8] x) => (float[1,seq,8] y) {
            shape = Shape<start=1, end=2>(x)
            zero = Constant<value_ints=[0]>()
            one = Constant<value_ints=[1]>()
            positions = Slice(table, zero, shape, one)
            y = Add(x, positions)
        }"""
    )
    graph.initializer.append(numpy_helper.from_array(table, "table"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = lb.Session(lb.compile(model))
    for length in (1, 7, 64):
        x = np.random.default_rng(length).standard_normal((1, length, 8)).astype(np.float32)
        np.testing.assert_array_equal(session(x)[0], x + table[:, :length])


def test_an_old_version_with_initializers_that_are_no_inputs(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "w")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (3, 2)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)], ir_version=3)
    x = np.full((3, 2), 2, np.float32)
    for source in (model, model.SerializeToString(), tmp_path / "m.onnx"):
        if isinstance(source, Path):
            onnx.save(model, source)
        np.testing.assert_array_equal(lb.Session(lb.compile(source))(x)[0], expected(model, {"x": x})[0])
    assert model.ir_version == 3  # the caller's is left as it was


def test_a_scale_of_one_element_beside_a_zero_point_of_none() -> None:
    graph = onnx.parser.parse_graph("g (int32[1] x) => (float[1] y) { y = DequantizeLinear(x, scale, zero) }")
    graph.initializer.append(numpy_helper.from_array(np.array([0.5], np.float32), "scale"))
    graph.initializer.append(numpy_helper.from_array(np.array(0, np.int32), "zero"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    x = np.array([-7], np.int32)
    np.testing.assert_array_equal(lb.Session(lb.compile(model))(x)[0], expected(model, {"x": x})[0])


def test_an_open_extent_is_what_a_rule_of_shapes_needs() -> None:
    """A state of one row says that an open batch is one, and weights say what open channels are."""
    rng = np.random.default_rng(3)
    graph = onnx.parser.parse_graph(
        """g (float[batch,channels,steps] x, float[1,1,4] h) => (float[steps,1,batch,4] y) {
            columns = Conv<kernel_shape=[1]>(x, filters)
            rows = Transpose<perm=[2,0,1]>(columns)
            y = GRU<hidden_size=4>(rows, w, r, , , h)
        }"""
    )
    for name, shape in (("filters", (5, 3, 1)), ("w", (1, 12, 5)), ("r", (1, 12, 4))):
        graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype("f4"), name))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    executable = lb.compile(model)
    assert list(executable.dimensions) == ["steps"]
    session = lb.Session(executable)
    for steps in (1, 9):
        feeds = {"x": rng.standard_normal((1, 3, steps)).astype("f4"), "h": rng.standard_normal((1, 1, 4)).astype("f4")}
        np.testing.assert_allclose(session(feeds)["y"], expected(model, feeds)[0], atol=1e-5)
