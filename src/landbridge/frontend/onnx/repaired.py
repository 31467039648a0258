"""Models that others take and that onnx's checker, or the reader of its IR, has no place for: made so that it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import numpy_helper

from landbridge.errors import ImportModelError

if TYPE_CHECKING:
    from onnx import ModelProto, SparseTensorProto, ValueInfoProto


def with_dense_weights(proto: ModelProto) -> ModelProto:
    """``proto``; where it has sparse initializers, one in which they are dense.

    Raises ImportModelError where their indices are not of their shape.
    """
    if not proto.graph.sparse_initializer:
        return proto
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    made.graph.initializer.extend(_dense(sparse) for sparse in made.graph.sparse_initializer)
    del made.graph.sparse_initializer[:]
    return made


def with_stated_shapes(proto: ModelProto) -> ModelProto | None:
    """``proto`` with a shape for each input and output of a tensor that states none, for the checker alone, which
    wants one; None where all do."""
    if not any(True for _ in _without_shape(proto)):
        return None
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for value in _without_shape(made):
        value.type.tensor_type.shape.SetInParent()
    return made


def _without_shape(proto: ModelProto) -> Iterator[ValueInfoProto]:
    for value in (*proto.graph.input, *proto.graph.output):
        kind = value.type
        if kind.WhichOneof("value") == "tensor_type" and not kind.tensor_type.HasField("shape"):
            yield value


def _dense(sparse: SparseTensorProto) -> onnx.TensorProto:
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
