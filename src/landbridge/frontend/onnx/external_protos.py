"""Removes external data from a ModelProto for the checker, or fills it in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import onnx_ir as ir
from onnx import TensorProto

from landbridge.errors import ImportModelError
from landbridge.frontend.onnx.data_rules import DataRules
from landbridge.frontend.onnx.external_data import DataFiles
from landbridge.frontend.onnx.node_order import graphs_of

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


def _external_tensors(proto: ModelProto) -> Iterator[TensorProto]:
    """Yields the tensors of ``proto`` with external data, those of functions and subgraphs included."""
    yield from _of_graph(proto.graph)
    for function in proto.functions:
        yield from _of_nodes(function.node)


def _of_graph(graph: GraphProto) -> Iterator[TensorProto]:
    sparse = [part for tensor in graph.sparse_initializer for part in (tensor.values, tensor.indices)]
    yield from filter(_is_external, (*graph.initializer, *sparse))
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            yield from filter(_is_external, (attribute.t, *attribute.tensors))
        for graph in graphs_of(node):
            yield from _of_graph(graph)


def _is_external(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL


def without_external_data(proto: ModelProto) -> ModelProto:
    """Returns ``proto`` itself; if it has external data, a copy for the checker with empty tensors instead.

    onnx's checker looks for the files itself, in the working folder, and follows no links.
    """
    if not any(True for _ in _external_tensors(proto)):
        return proto
    light = onnx.ModelProto()
    light.CopyFrom(proto)
    for tensor in list(_external_tensors(light)):
        tensor.ClearField("data_location")
        del tensor.external_data[:]
        tensor.raw_data = b""
        if tensor.data_type != TensorProto.STRING:
            del tensor.dims[:]
            tensor.dims.append(0)
    return light


def check_external_tensors(proto: ModelProto, name: str) -> None:
    """Raises ImportModelError if the location of a tensor's external data is malformed."""
    for tensor in _external_tensors(proto):
        _external_tensor(tensor, name)


def fill_external_data(proto: ModelProto, path: Path | None, rules: DataRules) -> None:
    """Fill in the external data of ``proto``, which was read from ``path``; raises ImportModelError."""
    name = "the model" if path is None else str(path)
    with DataFiles(name, path, rules) as files:
        for tensor in list(_external_tensors(proto)):
            tensor.raw_data = bytes(files.memory_of(_external_tensor(tensor, name)))
            tensor.ClearField("data_location")
            del tensor.external_data[:]


def _external_tensor(tensor: TensorProto, name: str) -> ir.ExternalTensor:
    """Returns ``tensor`` of the model ``name`` as an IR tensor; raises ImportModelError if its location is
    malformed.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    for key in ("offset", "length"):
        number = entries.get(key, "0")
        if not (number.isascii() and number.isdecimal()) or int(number) >> 63:
            raise ImportModelError(
                f"{name}: tensor {tensor.name!r} has {key}={number!r} of external data; whole numbers from 0 are legal"
            )
    try:
        dtype = ir.DataType(tensor.data_type)
    except ValueError as error:
        raise ImportModelError(f"{name}: tensor {tensor.name!r} is of an unknown element type: {error}") from error
    return ir.ExternalTensor(
        entries.get("location", ""),
        int(entries.get("offset", "0")),
        int(entries.get("length", "0")) or None,
        dtype,
        shape=ir.Shape(tensor.dims),
        name=tensor.name,
    )
