"""Gives outputs that share the memory of an input the shape of that input, because a buffer of fixed capacity does not
grow.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir


def declare_unified(graph: ir.Graph, alias: Mapping[str, str]) -> None:
    """Declare that each output of ``graph`` that ``alias`` names has the shape of its input.

    Exporters declare a past length for the input and a total length for the output, also for caches that may be one
    buffer.
    """
    inputs = {value.name: value for value in graph.inputs}
    for value in graph.outputs:
        input = inputs.get(alias.get(value.name or "", ""))
        if input is not None:
            value.shape = input.shape
