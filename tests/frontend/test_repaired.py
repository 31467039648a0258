"""Models that others take: sparse weights, results without a shape, weights of half a byte, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper, parser

import landbridge as lb
from landbridge.errors import CompileError, ModelWarning

X = np.random.default_rng(0).random((3, 64), np.float32)


def model(
    nodes: Sequence[NodeProto],
    weights: Sequence[TensorProto] = (),
    *,
    shape: Sequence[int] | None = (3, 64),
    result: Sequence[int | None] | None = None,
) -> ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, result)
    graph = helper.make_graph(list(nodes), "one", [x], [y], list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def check(proto: ModelProto) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for wanted, found in zip(session.run(None, {"x": X}), lb.Session(lb.compile(proto))(X), strict=True):
        assert np.asarray(found).shape == wanted.shape
        assert np.asarray(found).dtype == wanted.dtype
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-5)


def test_an_output_without_a_shape() -> None:
    check(model([helper.make_node("Transpose", ["x"], ["y"])]))


def small(inside: str = "a = Exp(x) y = Neg(a)", more: str = "") -> ModelProto:
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17, "f" : 1]> g (float[N,64] x) => (float[N,64] y) {{ {inside} }} {more}'
    )


def warned(proto: ModelProto, reported: str) -> None:
    """``proto`` does what onnxruntime does, with a warning."""
    before = proto.SerializeToString()
    with pytest.warns(ModelWarning, match=f"not valid ONNX.*{reported}"):
        check(proto)
    assert proto.SerializeToString() == before  # it is the caller's


def test_outputs_of_which_only_the_name_is_reported() -> None:
    proto = small("a = Shape(x) b = Exp(x) y = Neg(b)")
    proto.graph.output.extend(ValueInfoProto(name=name) for name in "ab")
    warned(proto, "outputs have no type, .*: 'a', 'b'")


def test_the_default_domain_by_its_other_name() -> None:
    for imported, used in itertools.product(("", "ai.onnx"), repeat=2):
        proto = small()
        proto.opset_import[0].domain = imported
        for node in proto.graph.node:
            node.domain = used
        if used:
            warned(proto, "operators are of the domain 'ai.onnx'")
        else:
            check(proto)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("imported", [False, True])
def test_it_is_so_in_functions_and_branches(inside: bool, imported: bool) -> None:
    """onnxruntime takes none of these."""
    branch = (
        "k = ReduceSum<keepdims = 0>(x) c = Cast<to = 9>(k) y = If(c) <then_branch = t () => (float[N,64] u) "
        "{ u = Neg(x) }, else_branch = e () => (float[N,64] v) { v = Abs(x) }>"
    )
    function = f'<domain: "f", opset_import: ["" : 17]> top (x) => (y) {{ {branch} }}'
    proto = small("y = f.top(x)", function)
    nodes = proto.functions[0].node
    if imported:
        proto.functions[0].opset_import[0].domain = "ai.onnx"
    if inside:
        for attribute in nodes[2].attribute:
            attribute.g.node[0].domain = "ai.onnx"
    else:
        nodes[1].domain = "ai.onnx"
    with pytest.warns(ModelWarning, match="domain 'ai.onnx'"):
        (found,) = lb.Session(lb.compile(proto))(X)
    np.testing.assert_array_equal(np.asarray(found), -X)


def test_the_last_version_of_a_domain_counts() -> None:
    """The sum over axes that are an attribute is of opset 12."""
    proto = small("y = ReduceSum<axes = [0]>(x)")
    proto.opset_import.append(helper.make_opsetid("ai.onnx", 12))
    proto.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 1
    check(proto)


def test_a_graph_without_a_name_and_weights_that_nothing_reads() -> None:
    proto = small("y = Add(x, w)")
    proto.graph.ClearField("name")
    proto.graph.initializer.extend(numpy_helper.from_array(np.ones(64, np.float32), name) for name in ("", "w", "w"))
    warned(proto, "the graph has no name; .*: 2 are left out")
    proto.graph.initializer.append(numpy_helper.from_array(np.zeros(64, np.float32), "w"))
    with pytest.raises(CompileError, match="w initializer name is not unique"):  # onnxruntime takes either
        lb.compile(proto)


def test_an_input_without_a_type_is_named() -> None:
    proto = small()
    proto.graph.input[0].ClearField("type")
    with pytest.raises(CompileError, match="input 'x' has no type"):
        lb.compile(proto)


def test_an_input_without_a_shape_is_requested() -> None:
    proto = model([helper.make_node("Relu", ["x"], ["y"])], shape=None)
    with pytest.raises(CompileError, match=r"input 'x' has no shape: give shapes="):
        lb.compile(proto)
    lb.compile(proto, shapes={"x": (2, 3)})


@pytest.mark.parametrize("indices", [[0, 65, 191], [[0, 0], [1, 1], [2, 63]]])
def test_sparse_weights(indices: list[int] | list[list[int]]) -> None:
    values = numpy_helper.from_array(np.array([1, -2, 3], np.float32), "w")
    places = numpy_helper.from_array(np.array(indices, np.int64), "places")
    proto = model([helper.make_node("Add", ["x", "w"], ["y"])], result=(3, 64))
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [3, 64]))
    check(proto)


@pytest.mark.sample(7)
@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("is_attribute", [False, True])
def test_weights_of_half_a_byte(kind: int, axis: int | None, is_attribute: bool) -> None:
    """Scales of the whole, of columns, or of blocks of 32 rows."""
    random = np.random.default_rng(1)
    low, high = (-8, 8) if kind == TensorProto.INT4 else (0, 16)
    of_blocks = axis == 0
    shape = {None: (), 1: (16,), 0: (2, 16)}[axis]
    weights = helper.make_tensor("w", kind, (64, 16), random.integers(low, high, 64 * 16))
    zeros = helper.make_tensor("z", kind, shape, random.integers(low, high, int(np.prod(shape))))
    scales = numpy_helper.from_array(random.random(shape, np.float32) + np.float32(0.1), "s")
    attributes = {} if axis is None else {"axis": axis, **({"block_size": 32} if of_blocks else {})}
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], **attributes),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    if is_attribute:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=weights))
    check(model(nodes, [zeros, scales] if is_attribute else [weights, zeros, scales], result=(3, 16)))


def test_what_would_make_half_bytes_is_refused() -> None:
    zero = helper.make_tensor("z", TensorProto.INT4, (), [0])
    scale = numpy_helper.from_array(np.float32(0.1), "s")
    back = helper.make_node("DequantizeLinear", ["q", "s"], ["y"])
    by_zero = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), back]
    by_type = [helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=TensorProto.INT4), back]
    like = [helper.make_node("Identity", ["z"], ["i"]), helper.make_node("CastLike", ["x", "i"], ["q"]), back]
    to = [helper.make_node("Cast", ["x"], ["q"], to=TensorProto.INT4), back]
    for nodes in (by_zero, by_type, like, to):
        with pytest.raises(CompileError, match=r"INT4.*INT8"):
            lb.compile(model(nodes, [zero, scale], result=(3, 64)))


def test_an_input_of_text_is_named() -> None:
    proto = model([helper.make_node("Relu", ["x"], ["y"])])
    proto.graph.input.append(helper.make_tensor_value_info("words", TensorProto.STRING, (2,)))
    with pytest.raises(CompileError, match="input 'words': ONNX element type STRING"):
        lb.compile(proto)


def branching(node: NodeProto, shape: tuple[int, ...]) -> ModelProto:
    """``node``, whose result has ``shape``, where the sum of ``x`` is not 0; else ``-x``."""
    then = helper.make_graph([node], "t", [], [helper.make_tensor_value_info("t", TensorProto.FLOAT, shape)])
    negated = [helper.make_node("Neg", ["x"], ["e"])]
    other = helper.make_graph(negated, "e", [], [helper.make_tensor_value_info("e", TensorProto.FLOAT, (3, 64))])
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Cast", ["sum"], ["c"], to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    return model(nodes)


def test_branches_of_other_shapes_give_each_its_own() -> None:
    session = lb.Session(lb.compile(branching(helper.make_node("Transpose", ["x"], ["t"]), (64, 3))))
    x = np.random.default_rng(0).integers(1, 9, (3, 64)).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(session(x)[0]), x.T)
    x[:, 32:] = -x[:, :32]
    np.testing.assert_array_equal(np.asarray(session(x)[0]), -x)


def test_branches_of_other_ranks_are_reported_in_words() -> None:
    proto = branching(helper.make_node("ArgMax", ["x"], ["t"], axis=1, keepdims=0), (3,))
    proto.graph.node[2].attribute[0].g.output[0].type.tensor_type.elem_type = TensorProto.INT64
    with pytest.raises(CompileError, match=r"give int64\[3\] and float32\[3, 64\].*make the condition constant"):
        lb.compile(proto)


def test_faults_are_one_line() -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    proto = model(nodes, result=(3, 64))
    proto.graph.output[0].name = "b"
    with pytest.raises(CompileError, match="not a valid ONNX model") as raised:
        lb.compile(proto)
    assert "\n" not in str(raised.value)
