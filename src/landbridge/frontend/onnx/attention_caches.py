"""Attention of ONNX whose past and present are to be one buffer: its Concat of past and new becomes a node.

``y, present_key, present_value = Attention(q, k, v, mask, past_key, past_value)`` becomes two Concats and an Attention
of what they give. Causal masks count from the past, so a node that makes its own is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

#: The places of past keys and values among the inputs, and of presents among the outputs.
CACHES = ((4, 1), (5, 2))


def may_append(node: ir.Node) -> bool:
    """Returns whether ``node`` is such an Attention."""
    if node.op_type != "Attention" or node.domain not in ("", "ai.onnx") or len(node.outputs) < 3:
        return False
    given = [*node.inputs, *[None] * 7]
    causal = node.attributes.get("is_causal")
    has_scores = len(node.outputs) > 3 and bool(node.outputs[3].name)
    return (
        all(given[place] is not None for place, _ in CACHES)
        and given[6] is None
        and (causal is None or not causal.as_int())
        and not has_scores
    )


def append_before_attention(graph: ir.Graph, presents: Collection[str]) -> None:
    """Let Concats append to the caches of ``graph`` whose outputs are called ``presents``."""
    for node in list(graph):
        if may_append(node) and all(node.outputs[at].name in presents for _, at in CACHES):
            _replace(graph, node)


def _replace(graph: ir.Graph, node: ir.Node) -> None:
    created: list[ir.Node] = []
    facts = {name: each for name, each in node.attributes.items() if name not in ("q_num_heads", "kv_num_heads")}
    heads = [node.attributes.get(name) for name in ("q_num_heads", "kv_num_heads")]

    def op(kind: str, given: list[ir.Value | None], name: str, **attributes: object) -> ir.Value:
        built = ir.node(kind, given, attributes, name=f"{node.name}.{name}")  # type: ignore[arg-type]
        built.outputs[0].name = f"{node.name}.{name}.0"
        created.append(built)
        return built.outputs[0]

    def as_heads(value: ir.Value | None, number: ir.Attr | None, name: str) -> ir.Value | None:
        """(batch, steps, heads * size) as (batch, heads, steps, size)."""
        if number is None:
            return value
        shape = op("Constant", [], f"{name}.shape", value_ints=[0, 0, number.as_int(), -1])
        return op("Transpose", [op("Reshape", [value, shape], f"{name}.heads")], name, perm=[0, 2, 1, 3])

    query = as_heads(node.inputs[0], heads[0], "q")
    joined = []
    for (place, at), number in zip(CACHES, (1, 2), strict=True):
        new = as_heads(node.inputs[number], heads[1], "kv"[number - 1])
        old = node.outputs[at]
        joined.append(op("Concat", [node.inputs[place], new], f"append.{number}", axis=2))
        _take_place(graph, old, joined[-1])
    mask = node.inputs[3] if len(node.inputs) > 3 else None
    attended = ir.Node("", "Attention", [query, *joined, mask], attributes=list(facts.values()), name=node.name)
    attended.outputs[0].name = f"{node.name}.heads.0"
    created.append(attended)
    result = attended.outputs[0]
    if heads[0] is not None:
        rows = op("Transpose", [result], "rows", perm=[0, 2, 1, 3])
        result = op("Reshape", [rows, op("Constant", [], "y.shape", value_ints=[0, 0, -1])], "y")
    graph.insert_before(node, created)
    _take_place(graph, node.outputs[0], result)
    graph.remove(node, safe=True)


def _take_place(graph: ir.Graph, old: ir.Value, new: ir.Value) -> None:
    """Let ``new`` be read, returned and named where ``old`` was."""
    new.type, new.shape = old.type, old.shape
    for use in list(old.uses()):
        use.node.replace_input_with(use.idx, new)
    for at, output in enumerate(graph.outputs):
        if output is old:
            graph.outputs[at] = new
    name, old.name = old.name, None
    new.name = name
