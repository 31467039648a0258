"""Values of a graph that others replace."""

from __future__ import annotations

import onnx_ir as ir


def take_place(graph: ir.Graph, old: ir.Value, new: ir.Value) -> None:
    """Let ``new`` be read, returned and named where ``old`` was."""
    new.type, new.shape = old.type, old.shape
    for use in list(old.uses()):
        use.node.replace_input_with(use.idx, new)
    for at, output in enumerate(graph.outputs):
        if output is old:
            graph.outputs[at] = new
    name, old.name = old.name, None
    new.name = name
