"""Extents of values that a model declares no shape for, as onnx infers them before anything is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import onnx
import onnx_ir as ir

#: Initializers with more bytes are shapes alone for the inference, which copies them.
_SMALL_BYTES = 1024


def inferred_extents(
    graph: ir.Graph, shapes: Mapping[str, Sequence[int | str]]
) -> dict[str, tuple[int | str | None, ...]]:
    """Returns the extents of values of ``graph`` by name: numbers, names of dimensions, None where one is not known.

    ``shapes``: those that the caller gives to inputs. Values that onnx infers nothing of are left out.
    """
    given = []
    for value in graph.inputs:
        info = ir.serde.serialize_value(value)
        if value.name and value.name in shapes and info.type.HasField("tensor_type"):
            kind = info.type.tensor_type.elem_type
            info = onnx.helper.make_tensor_value_info(info.name, kind, list(shapes[value.name]))
        given.append(info)
    small = []
    for name, value in graph.initializers.items():
        tensor = value.const_value
        if tensor is None:
            continue
        given.append(onnx.helper.make_tensor_value_info(name, int(tensor.dtype), list(tensor.shape.numpy())))
        if tensor.nbytes <= _SMALL_BYTES:
            small.append(ir.serde.serialize_tensor(tensor))
    nodes = [ir.serde.serialize_node(node) for node in graph]
    opsets = [onnx.helper.make_opsetid(*each) for each in graph.opset_imports.items()]
    proto = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "inferred", given, [], small), opset_imports=opsets, ir_version=10
    )
    found: dict[str, tuple[int | str | None, ...]] = {}
    with suppress(onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        for info in onnx.shape_inference.infer_shapes(proto, data_prop=True).graph.value_info:
            if info.type.tensor_type.HasField("shape"):
                extents = info.type.tensor_type.shape.dim
                found[info.name] = tuple(
                    e.dim_value if e.HasField("dim_value") else e.dim_param or None for e in extents
                )
    return found
