"""Files that the first tier reads are read as onnx reads them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from landbridge.first_tier.not_taken import NotTakenError
from landbridge.first_tier.onnx_file import OnnxGraph, read_graph
from landbridge.first_tier.wire_format import WireFormatError, fields, integers

_X = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, "N", None))
_Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)


def _read(nodes=(), tensors=(), inputs=(_X,)):
    graph = helper.make_graph(list(nodes), "g", list(inputs), [_Y], list(tensors))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("other", 3)]
    return read_graph(helper.make_model(graph, opset_imports=opsets).SerializeToString())


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"],
)
@pytest.mark.parametrize("raw", [True, False])
def test_tensors(dtype, raw):
    array = np.array([[0, 1, 2], [3, 4, 100]]).astype(dtype)
    if array.dtype.kind in "if":
        array[0, 1] *= -1
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    content = array.tobytes() if raw else array.reshape(-1)
    tensor = helper.make_tensor("w", kind, array.shape, content, raw=raw)
    found = _read(tensors=[tensor]).constants["w"]
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, numpy_helper.to_array(tensor))


def test_nodes_and_declarations():
    node = helper.make_node(
        "Op", ["x", "", "w"], ["y"], name="n", i=-3, f=0.5, s="text", ints=[1, -2], floats=[0.25, -1.0],
        strings=["a", "b"], t=numpy_helper.from_array(np.array([1, 2], np.int32)),
    )  # fmt: skip
    graph = _read([node])
    (read,) = graph.nodes
    assert (read.op_type, read.name, read.inputs, read.outputs) == ("Op", "n", ("x", "", "w"), ("y",))
    attributes = dict(read.attributes)
    np.testing.assert_array_equal(attributes.pop("t"), [1, 2])
    assert attributes == {
        "i": -3,
        "f": 0.5,
        "s": "text",
        "ints": [1, -2],
        "floats": [0.25, -1.0],
        "strings": ["a", "b"],
    }
    assert graph.opset == 17
    assert [(each.name, each.dtype, each.shape) for each in graph.inputs] == [("x", "float32", (1, "N", ""))]
    assert graph.outputs[0].shape is None


def test_an_initializer_is_no_input():
    tensor = numpy_helper.from_array(np.zeros(2, np.float32), "w")
    declared = helper.make_tensor_value_info("w", TensorProto.FLOAT, (2,))
    assert [each.name for each in _read(tensors=[tensor], inputs=[_X, declared]).inputs] == ["x"]


def test_what_is_not_read():
    external = TensorProto(name="w", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    bfloat = TensorProto(name="w", data_type=TensorProto.BFLOAT16, dims=[1], raw_data=b"\0\0")
    short = TensorProto(name="w", data_type=1, dims=[4], raw_data=b"\0" * 12)
    for tensor in (external, bfloat, short):
        with pytest.raises(NotTakenError):
            _read(tensors=[tensor])


def test_graphs_within_nodes():
    inner = helper.make_node("If", ["c"], ["y"], name="inner", then_branch=helper.make_graph([], "empty", [], [_Y]))
    branch = helper.make_graph([inner], "b", [], [_Y], [numpy_helper.from_array(np.ones(2), "w")])
    (read,) = _read([helper.make_node("If", ["x"], ["y"], then_branch=branch)]).nodes
    found = read.attributes["then_branch"]
    assert isinstance(found, OnnxGraph)
    assert (found.name, found.opset, [each.name for each in found.outputs]) == ("b", 17, ["y"])
    np.testing.assert_array_equal(found.constants["w"], [1, 1])
    assert [each.name for each in found.nodes] == ["inner"]
    assert isinstance(found.nodes[0].attributes["then_branch"], OnnxGraph)


def test_graphs_within_one_another_beyond_any_model_are_not_read():
    def field(number: int, content: bytes) -> bytes:
        size, length = len(content), b""
        while size > 127:
            size, length = size >> 7, length + bytes([size & 127 | 128])
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    for depth, is_read in ((30, True), (40, False), (5000, False)):
        graph = b""
        for _ in range(depth):
            attribute = field(1, b"then_branch") + field(6, graph) + bytes([20 << 3 & 127 | 128, 1, 5])
            graph = field(1, field(4, b"If") + field(5, attribute))
        if is_read:
            assert read_graph(field(7, graph)).nodes[0].op_type == "If"
        else:
            with pytest.raises(NotTakenError, match="within one another"):
                read_graph(field(7, graph))


def test_operators_of_other_domains_have_these_in_their_names():
    node = helper.make_node("Op", ["x"], ["y"], domain="com.microsoft")
    own = helper.make_node("Op", ["x"], ["y"], domain="ai.onnx")
    assert [each.op_type for each in _read([node, own]).nodes] == ["com.microsoft.Op", "Op"]


@pytest.mark.parametrize("content", [b"\x08", b"\x08" + b"\xff" * 10, b"\x0a\x05abc", b"\x0b", b"\x09\0\0"])
def test_damaged_messages(content):
    with pytest.raises(WireFormatError):
        list(fields(memoryview(content)))


def test_numbers():
    assert integers(memoryview(b"\x01\xac\x02" + b"\xff" * 9 + b"\x01")) == [1, 300, -1]
    assert list(fields(memoryview(b"\x08\x96\x01\x12\x02hi\x1d\x01\0\0\0"))) == [(1, 150), (2, b"hi"), (3, 1)]
