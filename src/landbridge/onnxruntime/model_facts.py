"""The inputs and outputs of a model by name, type and shape, and its metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.executable.parts import TensorSpec
from landbridge.onnxruntime.element_types import element_name, spelled
from landbridge.records import record

if TYPE_CHECKING:
    import onnx

#: The type of what a file says none of.
UNTYPED = "tensor(undefined)"


@record(frozen=True)
class NodeArg:
    """An input or output. ``type`` is a name such as ``tensor(float)``; ``shape`` has for each axis its extent, the
    name of its dimension, or None where neither is known.
    """

    name: str
    type: str
    shape: list[int | str | None]


@record(frozen=True)
class ModelMetadata:
    """The metadata that a model's file contains; ``version`` is the model's own."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


def _type_name(kind: onnx.TypeProto) -> str:
    """Returns the name of a type, such as ``"seq(map(int64,tensor(float)))"`` for a list of maps."""
    match kind.WhichOneof("value"):
        case "sequence_type":
            return f"seq({_type_name(kind.sequence_type.elem_type)})"
        case "map_type":
            return f"map({element_name(kind.map_type.key_type)},{_type_name(kind.map_type.value_type)})"
        case "optional_type":
            return f"optional({_type_name(kind.optional_type.elem_type)})"
        case _:
            return f"tensor({element_name(kind.tensor_type.elem_type)})"


def arguments(values: Iterable[onnx.ValueInfoProto]) -> Iterator[NodeArg]:
    """Yields a NodeArg for each of ``values``, the inputs or outputs of an ONNX graph."""
    for value in values:
        tensor = value.type.tensor_type
        yield NodeArg(value.name, _type_name(value.type), [_extent(dim) for dim in tensor.shape.dim])


def argument_of(spec: TensorSpec) -> NodeArg:
    """Returns the NodeArg of an input or output of a program."""
    shape: list[int | str | None] = [e if isinstance(e, int) else str(e) for e in spec.shape]
    return NodeArg(spec.name, spelled(np.dtype(numpy_dtype(spec.dtype))), shape)


def typed(argument: NodeArg, outputs: Iterable[TensorSpec]) -> NodeArg:
    """Returns ``argument``. Where the file gives it no type, type and shape are those of the output of a program with
    the same name, if there is one.
    """
    spec = next((spec for spec in outputs if spec.name == argument.name), None)
    return argument if argument.type != UNTYPED or spec is None else argument_of(spec)


def _extent(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None  # some exporters write -1 for an unknown extent
    return dim.dim_param or None


def metadata(model: onnx.ModelProto) -> ModelMetadata:
    """Returns the metadata that ``model`` contains."""
    return ModelMetadata(
        model.producer_name,
        model.graph.name,
        model.domain,
        model.doc_string,
        model.graph.doc_string,
        model.model_version,
        {entry.key: entry.value for entry in model.metadata_props},
    )
