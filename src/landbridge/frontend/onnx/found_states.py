"""Finds the caches of a model that may stay in one buffer: outputs that are an input with new steps appended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import onnx_ir as ir

from landbridge.executable.state_names import named_states
from landbridge.frontend.onnx.alias_shapes import declare_unified
from landbridge.frontend.onnx.attention_caches import CACHES, append_before_attention, may_append
from landbridge.frontend.onnx.retained_buffers import has_cache, keep_in_buffers
from landbridge.frontend.onnx.written_steps import write_steps_in_place

#: By operator: its inputs that are caches, and the outputs that are these with new steps.
_CACHES: dict[tuple[str, str], tuple[tuple[int, int], ...]] = {
    ("com.microsoft", "GroupQueryAttention"): ((3, 1), (4, 2)),
    ("com.microsoft", "MultiHeadAttention"): ((6, 1), (7, 2)),
    ("com.microsoft", "DecoderMaskedMultiHeadAttention"): ((5, 1), (6, 2)),
}


def prepare_states(graph: ir.Graph, alias: Mapping[str, str] | Literal["auto"] | None) -> dict[str, str]:
    """Returns the aliases of ``graph`` that ``alias`` requests, inputs by output; the graph then has them in one form.

    Steps are written or appended to a buffer, whose shape is that of past and present.
    """
    write_steps_in_place(graph)
    states = found_aliases(graph) if alias == "auto" else dict(alias or {})
    append_before_attention(graph, states)
    keep_in_buffers(graph, states, together=alias == "auto")
    declare_unified(graph, states)
    return states


def found_aliases(graph: ir.Graph) -> dict[str, str]:
    """Returns the inputs of ``graph`` by the outputs that append to them.

    Attention with caches among its inputs is found by what it is. A Concat of an input and another value is found where
    the names of input and output say the same: a Concat alone is no state.
    """
    inputs = {value.name: value for value in graph.inputs}
    named = named_states([name or "" for name in inputs], [value.name or "" for value in graph.outputs])
    found: dict[str, str] = {}
    for output in graph.outputs:
        past, name = _appended_to(output, inputs.get(named.get(output.name or "", ""))), output.name
        if past is not None and past.name in inputs and past.name not in found.values() and name:
            found[name] = past.name or ""
    return found


def _appended_to(output: ir.Value, named: ir.Value | None) -> ir.Value | None:
    """Returns the input that ``output`` appends to, where there is one; ``named``: the one that names say."""
    node = output.producer()
    if node is None:
        return None
    for place, number in _CACHES.get((node.domain, node.op_type), ()):
        if number < len(node.outputs) and node.outputs[number] is output and place < len(node.inputs):
            past = node.inputs[place]
            if node.op_type == "GroupQueryAttention" or (past is not None and has_cache(node, past, output)):
                return past
    for place, number in CACHES if may_append(node) else ():
        if node.outputs[number] is output:
            return node.inputs[place]
    is_concat = node.op_type == "Concat" and node.domain in ("", "ai.onnx") and len(node.inputs) == 2
    return named if is_concat and node.inputs[0] is named else None
