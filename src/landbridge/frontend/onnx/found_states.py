"""Finds the caches of a model that may stay in one buffer: outputs that are an input with new steps appended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import onnx_ir as ir

from landbridge.executable.state_names import named_states
from landbridge.frontend.onnx.alias_shapes import declare_unified
from landbridge.frontend.onnx.attention_caches import CACHES, append_before_attention, may_append
from landbridge.frontend.onnx.cache_reads import read_in_place
from landbridge.frontend.onnx.retained_buffers import has_cache, keep_in_buffers
from landbridge.frontend.onnx.stream_windows import Window, found_windows, keep_in_windows
from landbridge.frontend.onnx.written_steps import write_steps_in_place
from landbridge.sizes.size import Extent

#: By operator: its inputs that are caches, and the outputs that are these with new steps.
_CACHES: dict[tuple[str, str], tuple[tuple[int, int], ...]] = {
    ("com.microsoft", "GroupQueryAttention"): ((3, 1), (4, 2)),
    ("com.microsoft", "MultiHeadAttention"): ((6, 1), (7, 2)),
    ("com.microsoft", "DecoderMaskedMultiHeadAttention"): ((5, 1), (6, 2)),
    ("com.microsoft", "Attention"): ((4, 1),),
    ("com.microsoft", "QAttention"): ((8, 1),),
}


def prepare_states(
    graph: ir.Graph,
    alias: Mapping[str, str] | Literal["auto"] | None,
    shapes: Mapping[str, Sequence[int | str]],
    dimensions: Mapping[str, Extent],
    *,
    is_together: bool,
) -> tuple[dict[str, str], Mapping[str, Sequence[int | str]]]:
    """Returns the aliases of ``graph`` that ``alias`` requests, inputs by output; the graph then has them in one form.

    Steps are written or appended to a buffer, whose shape is that of past and present. Also returns ``shapes``, those
    that the caller gives to inputs by name, as this form has them. ``dimensions``: ranges of open dimensions, by name.
    ``is_together``: the program is for CPUs or for one device, so that no state is copied between devices.
    """
    write_steps_in_place(graph, shapes)
    windows = found_windows(graph, shapes, dimensions) if is_together and alias else {}
    states = found_aliases(graph, windows) if alias == "auto" else dict(alias or {})
    append_before_attention(graph, states)
    written = [node.outputs[0] for node in graph if node.op_type == "WriteSteps" and node.domain == "landbridge"]
    read_in_place(graph, [*(value for value in graph.outputs if value.name in states), *written])
    keep_in_buffers(graph, states, together=alias == "auto")
    slid = [window for name, window in windows.items() if states.get(name) == window.past.name]
    shapes = keep_in_windows(graph, slid, shapes)
    declare_unified(graph, states)
    return states, shapes


def found_aliases(graph: ir.Graph, windows: Mapping[str, Window]) -> dict[str, str]:
    """Returns the inputs of ``graph`` by the outputs that append to them.

    Attention with caches among its inputs is found by what it is. A Concat of an input and another value is found where
    the names of input and output say the same: a Concat alone is no state. So are ``windows`` of streams, by output.
    """
    inputs = {value.name: value for value in graph.inputs}
    named = named_states([name or "" for name in inputs], [value.name or "" for value in graph.outputs])
    found: dict[str, str] = {}
    for output in graph.outputs:
        called, name = inputs.get(named.get(output.name or "", "")), output.name
        past = _appended_to(output, called)
        if past is None and called is not None and name and name in windows and windows[name].past is called:
            past = called
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
