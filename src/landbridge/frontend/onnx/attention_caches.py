"""Attention of ONNX whose past and present are to be one buffer: its Concat of past and new becomes a node.

``y, present_key, present_value = Attention(q, k, v, mask, past_key, past_value)`` becomes two Concats and an Attention
of what they give. That one knows no past, from which a causal mask counts, so ``is_causal`` becomes a mask: query ``i``
attends key ``j`` where ``j <= past + i``. A node that has both a mask and ``is_causal`` is left as it is. Heads of
queries that share keys become rows of one head, so that keys and values are read where they are, once for all of them.
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
        node, (query_heads, heads) = self._node, self._heads()
        in_rows = "q_num_heads" in node.attributes
        query = self._as_heads(node.inputs[0], query_heads, "q") if in_rows else node.inputs[0]
        new = [self._as_heads(node.inputs[n], heads, "kv"[n - 1]) if in_rows else node.inputs[n] for n in (1, 2)]
        presents = []
        for (place, at), steps in zip(CACHES, new, strict=True):
            old = node.outputs[at]
            presents.append(self._op("Concat", [node.inputs[place], steps], f"append.{at}", axis=2))
            _take_place(graph, old, presents[-1])
        group, sizes = self._group(), [_extent(node.inputs[place], 3) for place, _ in CACHES]
        mask = node.inputs[3] if len(node.inputs) > 3 else None
        if _is_causal(node):
            mask = self._causal_mask(query, new[0], presents[0], group)
        elif mask is not None and group > 1:
            mask = self._mask_of_rows(mask, group)
        if group > 1:
            query = self._reshape(query, [0, heads, -1, sizes[0]], "q.rows")
        facts = [each for name, each in node.attributes.items() if name not in _NOT_LEFT]
        attended = ir.Node("", "Attention", [query, *presents, mask], attributes=facts, name=node.name)
        attended.outputs[0].name = f"{node.name}.heads.0"
        self._created.append(attended)
        result = attended.outputs[0]
        if group > 1:
            result = self._reshape(result, [0, query_heads, -1, sizes[1]], "y.heads")
        if in_rows:
            result = self._reshape(self._op("Transpose", [result], "rows", perm=[0, 2, 1, 3]), [0, 0, -1], "y")
        graph.insert_before(node, self._created)
        _take_place(graph, node.outputs[0], result)
        graph.remove(node, safe=True)

    def _heads(self) -> tuple[object, object]:
        """The numbers of heads of queries, and of keys and values; what is not known is no int."""
        given = [self._node.attributes.get(name) for name in ("q_num_heads", "kv_num_heads")]
        found = [None if each is None else each.as_int() for each in given]
        shapes = (self._node.inputs[0], self._node.inputs[CACHES[0][0]])
        query, shared = (_extent(value, 1) if n is None else n for n, value in zip(found, shapes, strict=True))
        return query, shared

    def _group(self) -> int:
        """The number of heads of queries that share one of keys; 1 where that, or what it needs, is not known."""
        query, heads = self._heads()
        if not (isinstance(query, int) and isinstance(heads, int)) or query == heads or query % heads:
            return 1
        if not all(isinstance(_extent(self._node.inputs[place], 3), int) for place, _ in CACHES):
            return 1
        mask = self._node.inputs[3] if len(self._node.inputs) > 3 else None
        if mask is not None and (mask.shape is None or len(mask.shape) < 2):
            return 1
        if mask is not None and mask.shape is not None and len(mask.shape) > 2 and mask.shape[-3] not in (1, query):
            return 1
        return query // heads

    def _op(self, kind: str, given: list[ir.Value | None], name: str, **attributes: object) -> ir.Value:
        built = ir.node(kind, given, attributes, name=f"{self._node.name}.{name}")  # type: ignore[arg-type]
        built.outputs[0].name = f"{self._node.name}.{name}.0"
        self._created.append(built)
        return built.outputs[0]

    def _ints(self, name: str, *numbers: object) -> ir.Value:
        return self._op("Constant", [], name, value_ints=list(numbers))

    def _reshape(self, value: ir.Value | None, shape: list[object], name: str) -> ir.Value:
        return self._op("Reshape", [value, self._ints(f"{name}.shape", *shape)], name)

    def _as_heads(self, value: ir.Value | None, heads: object, name: str) -> ir.Value:
        """(batch, steps, heads * size) as (batch, heads, steps, size)."""
        return self._op(
            "Transpose", [self._reshape(value, [0, 0, heads, -1], f"{name}.heads")], name, perm=[0, 2, 1, 3]
        )

    def _steps(self, value: ir.Value | None, name: str) -> ir.Value:
        at = self._op("Constant", [], f"{name}.at", value_int=2)
        return self._op("Gather", [self._op("Shape", [value], f"{name}.shape"), at], name)

    def _causal_mask(self, query: ir.Value | None, new: ir.Value | None, keys: ir.Value, group: int) -> ir.Value:
        """The bools (rows, keys) by which a query attends no key behind its own; rows are the queries of each head."""
        zero, one = (self._op("Constant", [], f"causal.{number}", value_int=number) for number in (0, 1))
        total = self._steps(keys, "causal.total")
        past = self._op("Sub", [total, self._steps(new, "causal.new")], "causal.past")
        last = self._op("Add", [past, self._steps(query, "causal.queries")], "causal.last")
        rows = self._op("Range", [past, last, one], "causal.rows")
        if group > 1:
            rows = self._op("Tile", [rows, self._ints("causal.group", group)], "causal.all_rows")
        columns = self._op("Range", [zero, total, one], "causal.columns")
        column = self._op("Unsqueeze", [rows, self._ints("causal.axis", 1)], "causal.column")
        return self._op("LessOrEqual", [columns, column], "causal")

    def _mask_of_rows(self, mask: ir.Value, group: int) -> ir.Value:
        """``mask``, (..., queries, keys), for the rows of all heads that share keys."""
        assert mask.shape is not None
        query, heads = self._heads()
        if len(mask.shape) > 2 and mask.shape[-3] == query:
            return self._reshape(mask, [*[0] * (len(mask.shape) - 3), heads, -1, 0], "mask")
        return self._op("Tile", [mask, self._ints("mask.group", *[1] * (len(mask.shape) - 2), group, 1)], "mask")


def _extent(value: ir.Value | None, axis: int) -> object:
    """Returns the extent of ``value`` along ``axis``; None, or no int, where it is not known."""
    return None if value is None or value.shape is None or len(value.shape) <= axis else value.shape[axis]


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
