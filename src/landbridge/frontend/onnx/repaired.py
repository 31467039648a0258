"""Repairs models that other runtimes accept, but that onnx's checker or IR reader refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import numpy_helper

from landbridge.errors import ImportModelError
from landbridge.frontend.onnx.node_order import all_nodes, sort_nodes
from landbridge.frontend.onnx.output_types import type_outputs
from landbridge.frontend.onnx.stray_operators import move_to_their_domain

if TYPE_CHECKING:
    from onnx import ModelProto, SparseTensorProto, ValueInfoProto

#: The alternative name of the domain ``""``.
_ALIAS = "ai.onnx"
#: The name given to graphs that have none.
_UNNAMED = "graph"


def repair(proto: ModelProto) -> list[str]:
    """Change ``proto``, which the checker refuses, into a model that it accepts, if only the form is wrong.

    Returns the faults, a clause each. Raises ImportModelError for an input without a type, and for nodes in a cycle.
    """
    untyped = [value.name for value in proto.graph.input if value.type.WhichOneof("value") is None]
    if untyped:
        raise ImportModelError(f"input {untyped[0]!r} has no type; state its dtype and shape in the file")
    move_to_their_domain(proto)
    found = []
    if _alias_nodes(proto):
        found.append(f"operators are of the domain {_ALIAS!r}, another name of the default one")
    unsorted = sort_nodes(proto)
    if unsorted:
        found.append(f"nodes of {', '.join(map(repr, unsorted))} are in no topological order; they are sorted")
    untyped = type_outputs(proto)
    if untyped:
        found.append(f"outputs have no type, and get that of what is computed: {', '.join(map(repr, untyped))}")
    if not proto.graph.name:
        proto.graph.name = _UNNAMED
        found.append("the graph has no name")
    dropped = _drop_unused(proto)
    if dropped:
        found.append(f"initializers have no name or are there twice: {dropped} are left out")
    return found


def _alias_nodes(proto: ModelProto) -> bool:
    """Replace the alternative name of the default domain by the usual one; returns whether it occurred."""
    nodes = [node for graph in all_nodes(proto) for node in graph.node]
    imports = [entry for owner in (proto, *proto.functions) for entry in owner.opset_import]
    found = [each for each in (*nodes, *imports) if each.domain == _ALIAS]
    for each in found:
        each.domain = ""
    return bool(found)


def _drop_unused(proto: ModelProto) -> int:
    """Drop initializers without a name, and duplicates; returns their number."""
    tensors = proto.graph.initializer
    first: dict[str, onnx.TensorProto] = {}
    dropped = [
        number
        for number, tensor in enumerate(tensors)
        if not tensor.name or (first.setdefault(tensor.name, tensor) is not tensor and first[tensor.name] == tensor)
    ]
    for number in reversed(dropped):
        del tensors[number]
    return len(dropped)


def with_dense_weights(proto: ModelProto) -> ModelProto:
    """Returns ``proto``; if it has sparse initializers, a copy in which they are dense.

    Raises ImportModelError if their indices are outside of their shape, or if they have external data.
    """
    if not proto.graph.sparse_initializer:
        return proto
    dense = onnx.ModelProto()
    dense.CopyFrom(proto)
    dense.graph.initializer.extend(_dense(sparse) for sparse in dense.graph.sparse_initializer)
    del dense.graph.sparse_initializer[:]
    return dense


def with_declared_types(proto: ModelProto) -> ModelProto:
    """Returns ``proto``; if inputs and outputs lack types or shapes, a copy for the checker in which all have some.

    The checker requires a type for each, and a shape for each tensor.
    """
    if not any(True for _ in _without_shape(proto)):
        return proto
    typed = onnx.ModelProto()
    typed.CopyFrom(proto)
    for value in _without_shape(typed):
        if value.type.WhichOneof("value") is None:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
        value.type.tensor_type.shape.SetInParent()
    return typed


def _without_shape(proto: ModelProto) -> Iterator[ValueInfoProto]:
    for value in (*proto.graph.input, *proto.graph.output):
        kind = value.type.WhichOneof("value")
        if kind is None or (kind == "tensor_type" and not value.type.tensor_type.HasField("shape")):
            yield value


def _dense(sparse: SparseTensorProto) -> onnx.TensorProto:
    if any(part.data_location == onnx.TensorProto.EXTERNAL for part in (sparse.values, sparse.indices)):
        raise ImportModelError(f"sparse initializer {sparse.values.name!r} has external data; save it with the model")
    values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    dense = np.zeros(tuple(sparse.dims), values.dtype)
    try:
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
    except (IndexError, ValueError) as error:
        raise ImportModelError(f"sparse initializer {sparse.values.name!r}: {error}") from error
    return numpy_helper.from_array(dense, sparse.values.name)
