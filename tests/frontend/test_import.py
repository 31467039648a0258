"""The walk: folding, branches, optional inputs, names and outputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import CompileError, InputError, ModelWarning, ShapeError, UnsupportedOperatorError
from landbridge.ir.graph_ops import CallOp, IfOp
from tests.frontend.models import BOOL, INT64, imported, model, run, value
from tests.ir.interpreter import names_of, run_module

RNG = np.random.default_rng(1)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)


def calls(module: object) -> list[CallOp]:
    return [op for op in module.main.walk() if isinstance(op, CallOp)]


def test_names_are_retained() -> None:
    m = model([helper.make_node("Add", ["a", "b"], ["c"], name="sum")], [value("a", [2]), value("b", [2])], ["c"])
    module = imported(m)
    assert names_of(module.main, "lb.input_names") == ["a", "b"]
    assert names_of(module.main, "lb.output_names") == ["c"]
    assert [c.node.data for c in calls(module)] == ["sum"]


def test_shape_arithmetic_disappears() -> None:
    """The usual Reshape to (Shape(x)[0], -1): nothing is left but a view and the copy of it."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    weights = {"zero": np.int64(0), "axes": np.array([0]), "rest": np.array([-1])}
    m = model(nodes, [value("x", [2, 3, 4])], ["y"], weights)
    assert len(calls(imported(m))) == 1
    np.testing.assert_array_equal(run(m, x=X)[0], np.maximum(X, 0).reshape(2, 12))


def test_folding_keeps_dtypes() -> None:
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["c"]),
        helper.make_node("Cast", ["c"], ["d"], to=TensorProto.FLOAT16),
    ]
    out = value("d", None, TensorProto.FLOAT16)
    m = model(nodes, [], [out], {"a": np.float32([1.5, 2]), "b": np.float32(3)})
    (d,) = run(m)
    assert d.dtype == np.float16
    np.testing.assert_array_equal(d, np.float16([4.5, 6]))


def test_random_is_not_folded() -> None:
    m = model([helper.make_node("RandomNormal", [], ["y"], shape=[2])], [], ["y"])
    with pytest.warns(lb.FallbackWarning, match="RandomNormal"):
        session = lb.Session(lb.compile(m))
    first, second = np.asarray(session()[0]), np.asarray(session()[0])
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"value": numpy_helper.from_array(np.float32([[1, 2]]))}, np.float32([[1, 2]])),
        ({"value": helper.make_tensor("t", TensorProto.FLOAT, [0], [])}, np.zeros(0, np.float32)),
        ({"value_float": 2.5}, np.float32(2.5)),
        ({"value_floats": [2.5, 3.5]}, np.float32([2.5, 3.5])),
        ({"value_int": 7}, np.int64(7)),
        ({"value_ints": [7, 8]}, np.int64([7, 8])),
    ],
)
def test_constant_forms(attributes: dict[str, object], expected: np.ndarray) -> None:
    kind = helper.np_dtype_to_tensor_dtype(expected.dtype)
    m = model([helper.make_node("Constant", [], ["y"], **attributes)], [], [value("y", None, kind)])
    (y,) = run(m)
    assert (y.dtype, y.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(y, expected)


def test_empty_optional_inputs() -> None:
    m = model(
        [helper.make_node("Clip", ["x", "", "high"], ["y"])], [value("x", [2, 3, 4])], ["y"], {"high": np.float32(0.5)}
    )
    np.testing.assert_array_equal(run(m, x=X)[0], np.minimum(X, 0.5))


@pytest.mark.parametrize(
    ("opset", "op", "inputs", "weights", "attributes", "expected"),
    [
        (10, "Clip", ["x"], {}, {"min": -0.5, "max": 0.5}, np.clip(X, -0.5, 0.5)),
        (11, "Clip", ["x", "l"], {"l": np.float32(0.1)}, {}, np.maximum(X, np.float32(0.1))),
        (9, "Slice", ["x"], {}, {"starts": [1], "ends": [9], "axes": [1]}, X[:, 1:]),
        (11, "Squeeze", ["u"], {}, {"axes": [0]}, X),
        (13, "Squeeze", ["u", "a"], {"a": np.array([0])}, {}, X),
        (11, "Unsqueeze", ["x"], {}, {"axes": [-1]}, X[..., None]),
        (11, "ReduceSum", ["x"], {}, {"axes": [1]}, X.sum(1, keepdims=True)),
        (13, "ReduceSum", ["x", "a"], {"a": np.array([1])}, {}, X.sum(1, keepdims=True)),
        (17, "ReduceMax", ["x"], {}, {"axes": [-1], "keepdims": 0}, X.max(-1)),
        (18, "ReduceMax", ["x", "a"], {"a": np.array([-1])}, {"keepdims": 0}, X.max(-1)),
        (10, "Pad", ["x"], {}, {"pads": [0, 0, 1, 0, 0, 0]}, np.pad(X, ((0, 0), (0, 0), (1, 0)))),
        (11, "Pad", ["x", "p"], {"p": np.array([0, 0, 1, 0, 0, 0])}, {}, np.pad(X, ((0, 0), (0, 0), (1, 0)))),
        (7, "Dropout", ["x"], {}, {"ratio": 0.5}, X),
        (12, "Dropout", ["x", "r"], {"r": np.float32(0.5)}, {}, X),
        (9, "Upsample", ["x", "s"], {"s": np.float32([1, 2, 1])}, {}, X.repeat(2, 1)),
        (10, "Resize", ["x", "s"], {"s": np.float32([1, 2, 1])}, {}, X.repeat(2, 1)),
        (12, "Softmax", ["x"], {}, {}, np.exp(X) / np.exp(X).sum((1, 2), keepdims=True)),
        (13, "Softmax", ["x"], {}, {}, np.exp(X) / np.exp(X).sum(-1, keepdims=True)),
    ],
)
def test_forms_of_older_opsets(
    opset: int,
    op: str,
    inputs: list[str],
    weights: dict[str, object],
    attributes: dict[str, object],
    expected: np.ndarray,
) -> None:
    name = inputs[0]
    feed = X[None] if name == "u" else X
    m = model(
        [helper.make_node(op, inputs, ["y"], **attributes)], [value(name, list(feed.shape))], ["y"], weights, opset
    )
    np.testing.assert_allclose(run(m, **{name: feed})[0], expected, rtol=1e-5, atol=1e-6)


def test_extra_outputs() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Neg", ["h"], ["y"])]
    m = model(nodes, [value("x", [2, 3, 4])], ["y"])
    module = imported(m, extra_outputs=["h", "x"])
    assert names_of(module.main, "lb.output_names") == ["y", "h", "x"]
    y, h, x = run_module(module, {"x": X})
    np.testing.assert_array_equal(h, np.maximum(X, 0))
    np.testing.assert_array_equal(y, -h)
    np.testing.assert_array_equal(x, X)
    with pytest.raises(InputError, match=r"'nothing'"):
        imported(m, extra_outputs=["nothing"])


def test_outputs_have_buffers_of_their_own() -> None:
    """An output that is an input, a constant, or another output's value is copied."""
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Relu", ["x"], ["b"]),
        helper.make_node("Identity", ["b"], ["c"]),
        helper.make_node("Identity", ["w"], ["d"]),
    ]
    m = model(nodes, [value("x", [2, 3, 4])], ["a", "b", "c", "d"], {"w": np.float32([1, 2])})
    module = imported(m)
    returned = module.main.body.block.last_op.operands
    assert len(set(returned)) == 4
    assert all(isinstance(v.owner, CallOp) for v in returned)
    a, b, c, d = run_module(module, {"x": X})
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(b, c)
    np.testing.assert_array_equal(d, [1, 2])


def branches(then: list[object], orelse: list[object], condition: object, weights: object = None) -> object:
    graphs = [helper.make_graph(nodes, "g", [], [value("r", None)]) for nodes in (then, orelse)]
    node = helper.make_node("If", ["q"], ["y"], then_branch=graphs[0], else_branch=graphs[1])
    inputs = [value("x", [2, 3, 4])] + ([condition] if condition else [])
    return model([node], inputs, ["y"], weights)


RELU, NEG = helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Neg", ["x"], ["r"])


def test_constant_condition_leaves_one_branch() -> None:
    m = branches([RELU], [NEG], None, {"q": np.array(False)})
    assert not [op for op in imported(m).main.walk() if isinstance(op, IfOp)]
    np.testing.assert_array_equal(run(m, x=X)[0], -X)


@pytest.mark.parametrize("taken", [True, False])
def test_runtime_condition(taken: bool) -> None:
    m = branches([RELU], [NEG], value("q", [], BOOL))
    np.testing.assert_array_equal(run(m, x=X, q=np.array(taken))[0], np.maximum(X, 0) if taken else -X)


def test_input_that_is_fixed() -> None:
    m = branches([RELU], [NEG], value("q", [], BOOL))
    module = imported(m, constants={"q": False})
    assert names_of(module.main, "lb.input_names") == ["x"]
    assert not [op for op in module.main.walk() if isinstance(op, IfOp)]
    np.testing.assert_array_equal(run_module(module, {"x": X})[0], -X)
    with pytest.raises(InputError, match="no input 'z'; its inputs: x, q"):
        imported(m, constants={"z": 1})
    with pytest.raises(InputError, match="'q' is float64, the model takes bool"):
        imported(m, constants={"q": np.array(1.0)})
    with pytest.raises(ShapeError, match="'q'"):
        imported(m, constants={"q": [True, False]})


def test_branch_that_returns_a_value_from_outside() -> None:
    m = branches([helper.make_node("Identity", ["x"], ["r"])], [NEG], value("q", [], BOOL))
    np.testing.assert_array_equal(run(m, x=X, q=np.array(True))[0], X)


def test_branches_of_different_shapes() -> None:
    bad = helper.make_node("Flatten", ["x"], ["r"])
    with pytest.raises(ShapeError, match="branches"):
        imported(branches([bad], [NEG], value("q", [], BOOL)))


def test_branch_that_is_invalid_for_these_shapes() -> None:
    bad = helper.make_node("Add", ["x", "w"], ["r"])
    worse = helper.make_node("MatMul", ["x", "w"], ["r"])
    m = branches([bad], [worse], value("q", [], BOOL), {"w": np.ones(5, np.float32)})
    with pytest.raises(ShapeError, match=r"(?s)then_branch of If node 'y'.*both branches must be valid"):
        imported(m)


@pytest.mark.parametrize("at", [0, 1])
def test_one_branch_that_is_invalid_is_an_error_if_it_is_taken(at: int) -> None:
    bad = helper.make_node("Add", ["x", "w"], ["r"], name="sum")
    sides = [[NEG], [NEG]]
    sides[at] = [bad]
    m = branches(*sides, value("q", [], BOOL), {"w": np.ones(5, np.float32)})
    session = lb.Session(lb.compile(m))
    taken = [at == 1, at == 0]
    np.testing.assert_array_equal(session(X, np.array(taken[0]))[0], -X)
    with pytest.raises(ShapeError, match=r"(?s)was not compiled: .*_branch of If node 'y'.*Add node 'sum'"):
        session(X, np.array(taken[1]))
    np.testing.assert_array_equal(session(X, np.array(taken[0]))[0], -X)


def test_errors_name_the_node() -> None:
    m = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        [value("x", [2, 3])],
        ["y"],
        {"w": np.ones((4, 2), np.float32)},
    )
    with pytest.raises(ShapeError, match=r"product.*inner extents"):
        imported(m)


def test_wrong_rank_is_a_shape_error() -> None:
    m = model(
        [
            helper.make_node("GlobalLpPool", ["x"], ["h"]),
            helper.make_node("DepthToSpace", ["h"], ["y"], blocksize=2, name="d2s"),
        ],
        [value("x", [2, 4, 4])],
        ["y"],
    )
    with pytest.raises(ShapeError, match=r"DepthToSpace node 'd2s': input has shape \(2, 4, 1\); legal: N C H W"):
        imported(m)


def test_shape_that_is_computed_at_run_time() -> None:
    m = model(
        [helper.make_node("Reshape", ["x", "s"], ["y"], name="fold")],
        [value("x", [2, 3, 4]), value("s", [1], INT64)],
        ["y"],
    )
    with pytest.raises(UnsupportedOperatorError, match=r"Reshape node 'fold'.*make it a constant"):
        imported(m)


def test_equal_scalars_are_baked_in() -> None:
    m = model([helper.make_node("Mul", ["x", "two"], ["y"])], [value("x", [2, 3, 4])], ["y"], {"two": np.float32([2])})
    module = imported(m)
    assert not module.constants
    np.testing.assert_array_equal(run(m, x=X)[0], X * 2)


_BRANCHES = "then_branch = t () => (float[2] a) { a = Neg(x) }, else_branch = e () => (float[2] a) { a = Abs(x) }"
_STEP = "body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] s2) { c2 = Identity(c) s2 = Add(s, s) }"
_SCAN = "body = b (float[2] s, float[2] e) => (float[2] s2, float[2] o) { s2 = Add(s, e) o = Identity(s2) }"


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (f"(bool[0] c, float[2] x) => (float[2] y) {{ y = If (c) <{_BRANCHES}> }}", r"condition has shape \(0,\)"),
        (f"(bool[3] c, float[2] x) => (float[2] y) {{ y = If (c) <{_BRANCHES}> }}", r"condition has shape \(3,\)"),
        (f"(float c, float[2] x) => (float[2] y) {{ y = If (c) <{_BRANCHES}> }}", "'cond' is float32; legal.*bool"),
        (f"(float[2] x) => (float[2] y) <int64[0] n = {{}}> {{ y = Loop (n, \"\", x) <{_STEP}> }}", "trip count has"),
        (f"(float[2] x) => (float[2] y) <int64 n = {{3}}> {{ y = Loop (n, \"\") <{_STEP}> }}", "body takes 3"),
        (f"(float[2] s, float[5,2] x) => (float[2] y, float[5,2] z)"
         f"{{ y, z = Scan (s, x) <{_SCAN}, num_scan_inputs = 0> }}",
         "num_scan_inputs is 0; legal: 1..2"),
        (f"(float[2] s, float x) => (float[2] y, float[5,2] z) {{ y, z = Scan (s, x) <{_SCAN}, num_scan_inputs = 1> }}",
         "what it scans has no axis"),
        (f"(float[2] s, float[5,2] x) => (float[2] y, float[5,2] z) {{ y, z = Scan (s, x) "
         f"<{_SCAN}, num_scan_inputs = 1, scan_input_axes = [0, 1]> }}", "scan_input_axes is .*; 1 values are legal"),
        ("(float[4,3] x) => (int64[4,3] y) { y = Relu (x) }", "'y' is float32, the file declares int64"),
        ("(int64[4] x) => (int64[4] y) { y = Relu (x) }", "operand 'X' is int64; legal at this opset: .*float32"),
        ("(float[4] x, int64[4] w) => (float[4] y) { y = Add (x, w) }", "'B' is int64 and 'A' is float32.*use Cast"),
        ("(float[4611686018427387904,8] x) => (float[n,m] y) { y = Relu (x) }", "takes 147573952589676412928 bytes"),
        ("(float[4] x) => (float[n,m] y) <int64[2] s = {1099511627776, 4}> { y = Expand (x, s) }", "takes 1759218604"),
        ("(float[4] x) => (float[n,m] y) <int64[2] s = {1099511627776, 4}> { c = ConstantOfShape (s) y = Add (x, c) }",
         "at most 4294967296"),
        ("(float[2] z) => (float[n] y) <float[8] x = {1, 2, 3, 4, 5, 6, 7, 8}> { y = Einsum <equation = \"i1\"> (x) }",
         "equation is 'i1'"),  # ONNX's inference of its shape does not end
        ("(float[2] z) => (float[n] y) <float[2,2] x = {1, 2, 3, 4}, int64[1,1] i = {0}>"
         "{ y = GatherND <batch_dims = -2> (x, i) }", "batch_dims is -2"),  # and that of this one ends the process
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused(graph: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        imported(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 13]> g {graph}'))


def test_an_output_is_not_always_as_the_file_declares_it() -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[3] y) { y = Abs (x) }'
    m = onnx.parser.parse_model(text)
    with pytest.warns(ModelWarning, match=r"output 'y' has shape \(2,\), the file declares \(3\)"):
        (y,) = run(m, x=np.float32([-1, 2]))
    np.testing.assert_array_equal(y, [1, 2])


def test_an_initializer_is_as_the_file_declares_it() -> None:
    """Files before IR version 4 list weights among the inputs, with a shape of their own."""
    m = model([helper.make_node("Relu", ["w"], ["y"])], [value("w", [3])], ["y"], {"w": np.ones(2, np.float32)})
    m.ir_version = 3
    with pytest.raises(ShapeError, match=r"initializer 'w' has shape \(2,\), the file declares \(3\)"):
        imported(m)


def test_folding_does_not_trust_the_reference() -> None:
    """onnx's reference drops axes of GlobalMaxPool, and puts those of Unsqueeze elsewhere."""
    text = (
        '<ir_version: 8, opset_import: ["" : 11]> g (float[2] z) => (float[1,2,1] y, float[3,1,1,2] u)'
        "<float[1,2,3] x = {1, 2, 3, 6, 5, 4}, float[3,2] w = {1, 2, 3, 4, 5, 6}>"
        "{ y = GlobalMaxPool (x) u = Unsqueeze <axes = [2, 1]> (w) }"
    )
    y, u = run(onnx.parser.parse_model(text), z=np.zeros(2, np.float32))
    np.testing.assert_array_equal(y, np.float32([[[3], [6]]]))
    np.testing.assert_array_equal(u, np.arange(1, 7, dtype=np.float32).reshape(3, 1, 1, 2))
