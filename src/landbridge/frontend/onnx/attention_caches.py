"""Attention of ONNX whose past and present are to be one buffer: its Concat of past and new becomes a node.

``y, present_key, present_value = Attention(q, k, v, mask, past_key, past_value)`` becomes two Concats and an Attention
of what they give. That one knows no past, from which a causal mask counts, so ``is_causal`` becomes a mask: query ``i``
attends key ``j`` where ``j <= past + i``. A node that has both a mask and ``is_causal`` is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

#: The places of past keys and values among the inputs, and of presents among the outputs.
CACHES = ((4, 1), (5, 2))
#: Attributes that the Attention of what was joined does not have.
_NOT_LEFT = ("q_num_heads", "kv_num_heads", "is_causal")


def may_append(node: ir.Node) -> bool:
    """Returns whether ``node`` is such an Attention."""
    if node.op_type != "Attention" or node.domain not in ("", "ai.onnx") or len(node.outputs) < 3:
        return False
    given = [*node.inputs, *[None] * 7]
    has_scores = len(node.outputs) > 3 and bool(node.outputs[3].name)
    return (
        all(given[place] is not None for place, _ in CACHES)
        and given[6] is None
        and not (_is_causal(node) and given[3] is not None)
        and not has_scores
    )


def _is_causal(node: ir.Node) -> bool:
    causal = node.attributes.get("is_causal")
    return causal is not None and bool(causal.as_int())


def append_before_attention(graph: ir.Graph, presents: Collection[str]) -> None:
    """Let Concats append to the caches of ``graph`` whose outputs are called ``presents``."""
    for node in list(graph):
        if may_append(node) and all(node.outputs[at].name in presents for _, at in CACHES):
            _Appending(node).replace(graph)


class _Appending:
    """Makes the nodes that replace ``node``. Queries, keys and values are (batch, heads, steps, size) in between."""

    def __init__(self, node: ir.Node) -> None:
        self._node = node
        self._created: list[ir.Node] = []

    def replace(self, graph: ir.Graph) -> None:
        """Let these nodes compute in ``graph`` what the node computes."""
        node = self._node
        query, *new = (self._as_heads(number, name) for number, name in enumerate("qkv"))
        presents = []
        for (place, at), steps in zip(CACHES, new, strict=True):
            old = node.outputs[at]
            presents.append(self._op("Concat", [node.inputs[place], steps], f"append.{at}", axis=2))
            _take_place(graph, old, presents[-1])
        mask = node.inputs[3] if len(node.inputs) > 3 else None
        if _is_causal(node):
            mask = self._causal_mask(query, new[0], presents[0])
        facts = [each for name, each in node.attributes.items() if name not in _NOT_LEFT]
        attended = ir.Node("", "Attention", [query, *presents, mask], attributes=facts, name=node.name)
        attended.outputs[0].name = f"{node.name}.heads.0"
        self._created.append(attended)
        result = attended.outputs[0]
        if "q_num_heads" in node.attributes:
            result = self._reshape(self._op("Transpose", [result], "rows", perm=[0, 2, 1, 3]), [0, 0, -1], "y")
        graph.insert_before(node, self._created)
        _take_place(graph, node.outputs[0], result)
        graph.remove(node, safe=True)

    def _op(self, kind: str, given: list[ir.Value | None], name: str, **attributes: object) -> ir.Value:
        built = ir.node(kind, given, attributes, name=f"{self._node.name}.{name}")  # type: ignore[arg-type]
        built.outputs[0].name = f"{self._node.name}.{name}.0"
        self._created.append(built)
        return built.outputs[0]

    def _reshape(self, value: ir.Value | None, shape: list[int], name: str) -> ir.Value:
        return self._op("Reshape", [value, self._op("Constant", [], f"{name}.shape", value_ints=shape)], name)

    def _as_heads(self, number: int, name: str) -> ir.Value | None:
        """Input ``number``, which may be (batch, steps, heads * size), as (batch, heads, steps, size)."""
        value, heads = self._node.inputs[number], self._node.attributes.get(f"{'kv' if number else 'q'}_num_heads")
        if heads is None:
            return value
        split = self._reshape(value, [0, 0, heads.as_int(), -1], f"{name}.heads")
        return self._op("Transpose", [split], name, perm=[0, 2, 1, 3])

    def _steps(self, value: ir.Value | None, name: str) -> ir.Value:
        at = self._op("Constant", [], f"{name}.at", value_int=2)
        return self._op("Gather", [self._op("Shape", [value], f"{name}.shape"), at], name)

    def _causal_mask(self, query: ir.Value | None, new: ir.Value | None, keys: ir.Value) -> ir.Value:
        """The bools (queries, keys) by which a query attends no key behind its own."""
        zero, one = (self._op("Constant", [], f"causal.{number}", value_int=number) for number in (0, 1))
        axis = self._op("Constant", [], "causal.axis", value_ints=[1])
        total = self._steps(keys, "causal.total")
        past = self._op("Sub", [total, self._steps(new, "causal.new")], "causal.past")
        last = self._op("Add", [past, self._steps(query, "causal.queries")], "causal.last")
        rows = self._op("Range", [past, last, one], "causal.rows")
        columns = self._op("Range", [zero, total, one], "causal.columns")
        return self._op("LessOrEqual", [columns, self._op("Unsqueeze", [rows, axis], "causal.column")], "causal")


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
