"""Reads ``.ort`` files of onnxruntime as ONNX models: the same graph in another container.

The tables are those of onnxruntime's ``ort.fbs``; fields have the same names here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
from onnx import AttributeProto, TensorProto, helper

from landbridge.errors import ImportModelError
from landbridge.frontend.onnx.flatbuffer import FlatTable

_MARK = b"ORTM"
_TENSOR, _SEQUENCE = 1, 2
#: The version of the ONNX format for models whose file has none.
_IR_VERSION = 8


def is_ort_file(content: bytes | memoryview) -> bool:
    """Returns whether the bytes begin like those of an ``.ort`` file."""
    return bytes(content[4:8]) == _MARK


def model_of_ort(content: bytes | memoryview) -> onnx.ModelProto:
    """Returns the model in the bytes of an ``.ort`` file; raises ImportModelError if they cannot be read."""
    model = FlatTable.root(memoryview(content)).table(1)
    graph = None if model is None else model.table(7)
    if model is None or graph is None:
        raise ImportModelError("the .ort file holds no graph")
    opsets = [helper.make_opsetid(entry.text(0), entry.number(1)) for entry in model.tables(1)]
    created = helper.make_model(_graph(graph, "ort"), opset_imports=opsets, ir_version=model.number(0) or _IR_VERSION)
    created.producer_name, created.producer_version = model.text(2), model.text(3)
    return created


def _graph(table: FlatTable, name: str) -> onnx.GraphProto:
    infos = {value.name: value for value in map(_value, table.tables(1))}
    nodes = sorted(((node.number(4, "I"), _node(node)) for node in table.tables(2)), key=lambda each: each[0])
    created = helper.make_graph(
        [],
        name,
        [infos[n] for n in table.texts(5)],
        [infos[n] for n in table.texts(6)],
        list(map(_tensor, table.tables(0))),
    )
    if next(table.tables(7), None) is not None:
        raise ImportModelError("the .ort file has sparse weights; export it with dense ones")
    created.node.extend(
        _in_order([node for _, node in nodes], {*infos} - {o for _, node in nodes for o in node.output})
    )
    return created


def _in_order(nodes: list[onnx.NodeProto], known: set[str]) -> list[onnx.NodeProto]:
    """Returns ``nodes`` sorted topologically; the file lists them in the order in which they were added."""
    makers = {name: location for location, node in enumerate(nodes) for name in node.output if name}
    done: set[int] = set()
    ordered = []
    for first in range(len(nodes)):
        waiting = [first]
        while waiting:
            location = waiting[-1]
            needed = [
                makers[n] for n in _read(nodes[location]) if n not in known and n in makers and makers[n] not in done
            ]
            if needed and location not in done:
                waiting.append(needed[0])
                if len(waiting) > len(nodes):
                    raise ImportModelError("nodes of the .ort file take each other's outputs in a circle")
                continue
            waiting.pop()
            if location not in done:
                done.add(location)
                ordered.append(nodes[location])
    return ordered


def _read(node: onnx.NodeProto) -> list[str]:
    """Returns the values that a node and the graphs inside it read from the enclosing graph."""
    names = list(node.input)
    for attribute in node.attribute:
        for inner in [attribute.g, *attribute.graphs]:
            names += [name for each in inner.node for name in _read(each)] + [value.name for value in inner.output]
    return names


def _node(table: FlatTable) -> onnx.NodeProto:
    node = helper.make_node(table.text(5), table.texts(8), table.texts(9), table.text(0), domain=table.text(2))
    node.attribute.extend(map(_attribute, table.tables(10)))
    return node


def _attribute(table: FlatTable) -> AttributeProto:
    kind = table.number(2, "i")
    read = _ATTRIBUTES.get(kind)
    if read is None:
        raise ImportModelError(f"attribute {table.text(0)!r} of the .ort file is of kind {kind}, which is not known")
    return helper.make_attribute(table.text(0), read(table), attr_type=kind)


def _tables(field: int, make: Callable[[FlatTable], Any]) -> Callable[[FlatTable], Any]:
    return lambda table: [make(each) for each in table.tables(field)]


def _one(field: int, make: Callable[[FlatTable], Any]) -> Callable[[FlatTable], Any]:
    def read(table: FlatTable) -> Any:
        inner = table.table(field)
        if inner is None:
            raise ImportModelError(f"attribute {table.text(0)!r} of the .ort file has no value")
        return make(inner)

    return read


def _tensor(table: FlatTable) -> TensorProto:
    tensor = TensorProto(name=table.text(0), dims=table.values(2), data_type=table.number(3, "i"))
    if tensor.data_type == TensorProto.STRING:
        tensor.string_data.extend(text.encode() for text in table.texts(5))
    else:
        tensor.raw_data = bytes(table.data(4))
    if table.number(6) and not tensor.raw_data:
        raise ImportModelError(
            f"weights {tensor.name!r} of the .ort file are in a file of their own; give the .onnx file"
        )
    return tensor


def _value(table: FlatTable) -> onnx.ValueInfoProto:
    info = onnx.ValueInfoProto(name=table.text(0))
    kind = table.table(2)
    if kind is not None:
        info.type.CopyFrom(_type(kind))
    return info


def _type(table: FlatTable) -> onnx.TypeProto:
    value = table.table(2)
    kind = onnx.TypeProto()
    if value is None or table.number(1, "B") not in (_TENSOR, _SEQUENCE):
        return kind
    if table.number(1, "B") == _SEQUENCE:
        inner = value.table(0)
        if inner is not None:
            kind.sequence_type.elem_type.CopyFrom(_type(inner))
        return kind
    kind.tensor_type.elem_type = value.number(0, "i")
    shape = value.table(1)
    if shape is not None:
        kind.tensor_type.shape.SetInParent()
        for entry in shape.tables(0):
            dim, extent = kind.tensor_type.shape.dim.add(), entry.table(0)
            if extent is not None and extent.number(0, "b") == 1:
                dim.dim_value = extent.number(1)
            elif extent is not None and extent.text(2):
                dim.dim_param = extent.text(2)
    return kind


_ATTRIBUTES: dict[int, Callable[[FlatTable], Any]] = {
    AttributeProto.FLOAT: lambda table: table.number(3, "f"),
    AttributeProto.INT: lambda table: table.number(4),
    AttributeProto.STRING: lambda table: table.text(5),
    AttributeProto.TENSOR: _one(6, _tensor),
    AttributeProto.GRAPH: _one(7, lambda table: _graph(table, "inner")),
    AttributeProto.FLOATS: lambda table: table.values(8, "f"),
    AttributeProto.INTS: lambda table: table.values(9),
    AttributeProto.STRINGS: lambda table: table.texts(10),
    AttributeProto.TENSORS: _tables(11, _tensor),
    AttributeProto.GRAPHS: _tables(12, lambda table: _graph(table, "inner")),
}
