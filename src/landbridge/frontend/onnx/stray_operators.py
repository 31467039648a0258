"""Operators of onnxruntime that a file has in ONNX's own domain, where ONNX does not know them, or not yet."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from landbridge.frontend.onnx.bodies.registry import is_defined

_MICROSOFT = "com.microsoft"


def in_their_domain(proto: onnx.ModelProto) -> onnx.ModelProto:
    """``proto``; where it has such operators, a copy that has them in ``com.microsoft``, as onnxruntime takes them."""
    opset = max((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    if not any(_is_stray(node, opset) for node in _nodes(proto.graph)):
        return proto
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for node in _nodes(made.graph):
        if _is_stray(node, opset):
            node.domain = _MICROSOFT
    if all(entry.domain != _MICROSOFT for entry in made.opset_import):
        made.opset_import.append(onnx.helper.make_opsetid(_MICROSOFT, 1))
    return made


def _is_stray(node: onnx.NodeProto, opset: int) -> bool:
    if node.domain not in ("", "ai.onnx") or not is_defined(_MICROSOFT, node.op_type):
        return False
    try:
        onnx.defs.get_schema(node.op_type, opset)
    except onnx.defs.SchemaError:
        return True
    return False


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)
