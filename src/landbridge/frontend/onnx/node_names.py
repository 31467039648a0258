"""The names of nodes, also of those to which a model gives none."""

from __future__ import annotations

import onnx_ir as ir


def name_of_node(node: ir.Node) -> str:
    """Returns the name of ``node``, else that of its first output that has one, else its operator."""
    return node.name or next((str(value.name) for value in node.outputs if value.name), node.op_type)
