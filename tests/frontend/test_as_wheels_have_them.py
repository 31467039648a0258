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


def test_a_dimension_that_is_requested_keeps_its_name() -> None:
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


@pytest.mark.filterwarnings("ignore:output 'y' has shape")
def test_an_axis_that_is_dropped_where_it_has_one_element() -> None:
    """One program for a batch of one, whose results have an axis less, and one for all others."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[batch,1,n] x) => (float[m,n] y) {
            twice = Add(x, x)
            most = ReduceMax<axes=[2], keepdims=1>(twice)
            of_most = Div(twice, most)
            y = Squeeze(of_most)
        }"""
    )
    executable = lb.compile(model, dims={"n": lb.Dim(2, 64)})
    session = lb.Session(executable)
    rng = np.random.default_rng(4)
    for batch, n in ((5, 3), (1, 4), (5, 3), (1, 64)):
        x = rng.standard_normal((batch, 1, n)).astype("f4")
        found, (wanted,) = session(x)[0], expected(model, {"x": x})
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted)
        session.set_input("x", x)
        session.run()
        np.testing.assert_array_equal(session.get_output(0), wanted)
    with pytest.raises(lb.ShapeError, match=r"axis 2 of input 'x' is 65; legal: n, with n in 2..64"):
        session(np.zeros((3, 1, 65), "f4"))
    assert len(lb.compile(model, dims={"n": lb.Dim(2, 64), "batch": "2.."}).programs) == 1


def of_rate(name: str, window: int) -> str:
    """A branch for inputs of one ``window``: what else comes has an axis too many for Gemm."""
    return f"""{name} () => (float[1,2] {name}_y) {{
        {name}_length = Shape<start=1, end=2>(x)
        {name}_size = Constant<value_ints=[{window}]>()
        {name}_windows = Div({name}_length, {name}_size)
        {name}_one = Constant<value_ints=[1]>()
        {name}_is_one = Equal({name}_windows, {name}_one)
        {name}_rows = If({name}_is_one) <
            then_branch = {name}_t () => (float[1,n] {name}_same) {{ {name}_same = Identity(x) }},
            else_branch = {name}_e () => (float[1,1,n] {name}_more) {{ {name}_more = Unsqueeze(x, {name}_one) }}
        >
        {name}_mean = ReduceMean<axes=[-1], keepdims=1>({name}_rows)
        {name}_scale = Constant<value = float[1,2] {{{window}.0, 1.0}}>()
        {name}_y = Gemm({name}_mean, {name}_scale)
    }}"""


def test_a_branch_that_is_for_some_sizes_alone() -> None:
    """As a detector of voices has it: a branch for each rate, and each for one window of its own length."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,n] x, int64 rate) => (float[1,2] y) {{
            high = Constant<value_int=16000>()
            is_high = Equal(rate, high)
            y = If(is_high) < then_branch = {of_rate("then", 16)}, else_branch = {of_rate("other", 8)} >
        }}"""
    )
    executable = lb.compile(model)
    assert executable.dimensions["n"] == lb.Dim(8, 31)
    session = lb.Session(executable)
    for rate, lengths in ((16000, (16, 31)), (8000, (8, 15))):
        for n in lengths:
            feeds = {"x": np.arange(n, dtype="f4")[None], "rate": np.array(rate)}
            np.testing.assert_allclose(session(feeds)["y"], expected(model, feeds)[0], rtol=1e-6)
    session.prepare(n=[9, 20])
    with pytest.raises(lb.ShapeError, match="axis 1 of input 'x' is 32; legal: n, with n in "):
        session({"x": np.zeros((1, 32), "f4"), "rate": np.array(16000)})
    with pytest.raises(lb.ShapeError, match="dimension 'n' is 7"):
        session.prepare(n=7)
    with pytest.raises(lb.LandbridgeError, match="cannot be compiled for these shapes"):
        session({"x": np.zeros((1, 20), "f4"), "rate": np.array(8000)})
