"""Attention of ONNX whose past and present are to be one buffer: its Concat of past and new becomes a node.

``y, present_key, present_value = Attention(q, k, v, mask, past_key, past_value)`` becomes two Concats and an Attention
of what they give. That one knows no past, from which positions of queries count, so ``is_causal`` and windows become a
mask: query ``i`` attends key ``j`` where ``past + i - left <= j <= past + i + right``, and a causal one none behind its
own. A mask of the node says the same of other keys: both have to allow a key.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import onnx_ir as ir

from landbridge.frontend.onnx.replaced_values import take_place

#: The places of past keys and values among the inputs, and of presents among the outputs.
CACHES = ((4, 1), (5, 2))
#: Attributes that the Attention of what was joined does not have.
_WINDOWS = ("left_window_size", "right_window_size")
_NOT_LEFT = ("q_num_heads", "kv_num_heads", "is_causal", *_WINDOWS)
#: The opset from which a mask may be shorter than the keys: those behind it are not attended.
_SHORTER_MASKS = 24


def may_append(node: ir.Node) -> bool:
    """Returns whether ``node`` is such an Attention."""
    if node.op_type != "Attention" or node.domain not in ("", "ai.onnx") or len(node.outputs) < 3:
        return False
    given = [*node.inputs, *[None] * 7]
    has_scores = len(node.outputs) > 3 and bool(node.outputs[3].name)
    return (
        all(given[place] is not None for place, _ in CACHES)
        and given[6] is None
        and not has_scores
        and (given[3] is None or not _depends_on_positions(node) or _is_bool(given[3]) is not None)
    )


def _is_causal(node: ir.Node) -> bool:
    causal = node.attributes.get("is_causal")
    return causal is not None and bool(causal.as_int())


def _window(node: ir.Node, name: str) -> int:
    size = node.attributes.get(name)
    return -1 if size is None else size.as_int()


def _depends_on_positions(node: ir.Node) -> bool:
    return _is_causal(node) or any(_window(node, name) >= 0 for name in _WINDOWS)


def _is_bool(mask: ir.Value) -> bool | None:
    """Returns whether ``mask`` has bools; None where its dtype is not known."""
    return None if mask.dtype is None else mask.dtype == ir.DataType.BOOL


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
            take_place(graph, old, presents[-1])
        mask = node.inputs[3] if len(node.inputs) > 3 else None
        if _depends_on_positions(node):
            allowed = self._allowed(query, new[0], presents[0])
            mask = allowed if mask is None else self._both(mask, allowed, graph)
        facts = [each for name, each in node.attributes.items() if name not in _NOT_LEFT]
        attended = ir.Node("", "Attention", [query, *presents, mask], attributes=facts, name=node.name)
        attended.outputs[0].name = f"{node.name}.heads.0"
        self._created.append(attended)
        result = attended.outputs[0]
        if "q_num_heads" in node.attributes:
            result = self._reshape(self._op("Transpose", [result], "rows", perm=[0, 2, 1, 3]), [0, 0, -1], "y")
        graph.insert_before(node, self._created)
        take_place(graph, node.outputs[0], result)
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

    def _allowed(self, query: ir.Value | None, new: ir.Value | None, keys: ir.Value) -> ir.Value:
        """The bools (queries, keys) that the positions of a query and a key allow."""
        zero, one = (self._op("Constant", [], f"causal.{number}", value_int=number) for number in (0, 1))
        axis = self._op("Constant", [], "causal.axis", value_ints=[1])
        total = self._steps(keys, "causal.total")
        past = self._op("Sub", [total, self._steps(new, "causal.new")], "causal.past")
        last = self._op("Add", [past, self._steps(query, "causal.queries")], "causal.last")
        rows = self._op("Unsqueeze", [self._op("Range", [past, last, one], "causal.rows"), axis], "causal.column")
        columns = self._op("Range", [zero, total, one], "causal.columns")
        left, right = (_window(self._node, name) for name in _WINDOWS)
        conditions = [self._op("LessOrEqual", [columns, rows], "causal")] if _is_causal(self._node) else []
        if left >= 0:
            first = self._op("Sub", [rows, self._op("Constant", [], "left.size", value_int=left)], "left.first")
            conditions.append(self._op("GreaterOrEqual", [columns, first], "left"))
        if right >= 0:
            end = self._op("Add", [rows, self._op("Constant", [], "right.size", value_int=right)], "right.last")
            conditions.append(self._op("LessOrEqual", [columns, end], "right"))
        allowed, *others = conditions
        for number, other in enumerate(others):
            allowed = self._op("And", [allowed, other], f"allowed.{number}")
        return allowed

    def _both(self, mask: ir.Value, allowed: ir.Value, graph: ir.Graph) -> ir.Value:
        """The mask that attends what ``mask`` and the bools ``allowed`` (queries, keys) do."""
        is_bool = _is_bool(mask)
        kind = mask.dtype or ir.DataType.FLOAT
        never = self._constant(False if is_bool else -math.inf, kind, "mask.never")
        if graph.opset_imports.get("", 0) >= _SHORTER_MASKS:
            mask = self._padded(mask, allowed, never)
        if is_bool:
            return self._op("And", [mask, allowed], "mask.both")
        return self._op("Where", [allowed, mask, never], "mask.both")

    def _padded(self, mask: ir.Value, allowed: ir.Value, fill: ir.Value) -> ir.Value:
        """``mask``, as long as ``allowed``: keys behind it get ``fill``."""
        counts = [
            self._op("Shape", [each], f"mask.{name}", start=-1) for each, name in ((allowed, "keys"), (mask, "own"))
        ]
        none, axis = (self._op("Constant", [], f"mask.{n}", value_ints=[v]) for n, v in (("none", 0), ("axis", -1)))
        pads = self._op("Concat", [none, self._op("Sub", [*counts], "mask.absent")], "mask.pads", axis=0)
        return self._op("Pad", [mask, pads, fill, axis], "mask.padded")

    def _constant(self, number: float, kind: ir.DataType, name: str) -> ir.Value:
        return self._op("Constant", [], name, value=ir.tensor(np.array(number, kind.numpy()), kind))
