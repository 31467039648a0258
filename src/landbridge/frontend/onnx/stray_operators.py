"""Moves operators of onnxruntime, which a file has in ONNX's own domain although ONNX does not define them, to their
domain.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from landbridge.frontend.onnx.node_order import graphs_of
from landbridge.operators import REGISTRY, Definition

_MICROSOFT = "com.microsoft"


def move_to_their_domain(proto: onnx.ModelProto) -> None:
    """Move such operators of ``proto`` to ``com.microsoft``, as onnxruntime does."""
    opset = max((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    strays = [node for node in _nodes(proto.graph) if _is_stray(node, opset)]
    for node in strays:
        node.domain = _MICROSOFT
    if strays and all(entry.domain != _MICROSOFT for entry in proto.opset_import):
        proto.opset_import.append(onnx.helper.make_opsetid(_MICROSOFT, 1))


def _is_stray(node: onnx.NodeProto, opset: int) -> bool:
    if node.domain not in ("", "ai.onnx") or REGISTRY.find(Definition, _MICROSOFT, node.op_type, 1) is None:
        return False
    try:
        onnx.defs.get_schema(node.op_type, opset)
    except onnx.defs.SchemaError:
        return True
    return False


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for inner in graphs_of(node):
            yield from _nodes(inner)
