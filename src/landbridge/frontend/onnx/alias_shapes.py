"""Outputs that are to be the memory of an input have its shape: a buffer that is filled does not grow."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir


def declare_unified(graph: ir.Graph, alias: Mapping[str, str]) -> None:
    """Declare each output of ``graph`` that ``alias`` names to have the shape of its input.

    Exporters write a past length for the one and a total length for the other, of caches that may also be one buffer.
    """
    inputs = {value.name: value for value in graph.inputs}
    for value in graph.outputs:
        input = inputs.get(alias.get(value.name or "", ""))
        if input is not None:
            value.shape = input.shape
