"""Computes how many nodes a model has after its functions and loops are unfolded, without unfolding them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from landbridge.errors import ImportModelError

#: The domain, name and overload of a local function.
_Name = tuple[str, str, str]


def unfolded_nodes(model: ir.Model) -> int:
    """Returns the number of nodes of ``model``, with every call of a local function replaced by the function's nodes.

    Raises ImportModelError for functions that call themselves, and names the cycle.
    """
    functions: dict[_Name, ir.Function] = dict(model.functions)
    sizes: dict[_Name, int] = {}
    for name in functions:
        _measure(name, functions, sizes)
    return _size(model.graph, sizes)


def _measure(name: _Name, functions: Mapping[_Name, ir.Function], sizes: dict[_Name, int]) -> None:
    """Record the size of function ``name`` and of all functions that it calls; not recursive, because calls may be
    nested deeply.
    """
    open_calls: dict[_Name, None] = {}
    pending: list[_Name] = [name]
    while pending:
        at = pending[-1]
        if at in sizes:
            pending.pop()
            continue
        missing = [f for node in _nodes(functions[at]) if (f := node.op_identifier()) in functions and f not in sizes]
        if not missing:
            sizes[at] = _size(functions[at], sizes)
            open_calls.pop(at, None)
            continue
        open_calls[at] = None
        for called in missing:
            if called in open_calls:
                path = [*list(open_calls)[list(open_calls).index(called) :], called]
                raise ImportModelError(
                    f"local functions call themselves: {' -> '.join('.'.join(filter(None, f)) for f in path)}; ONNX "
                    "has no recursion: write it as a Loop"
                )
        pending.append(missing[0])


def _size(graph: ir.Graph | ir.Function, sizes: Mapping[_Name, int]) -> int:
    return sum(sizes.get(node.op_identifier(), 1) for node in _nodes(graph))


def _nodes(graph: Iterable[ir.Node]) -> Iterable[ir.Node]:
    """Yields the nodes of a graph and of all graphs inside it."""
    pending: list[Iterable[ir.Node]] = [graph]
    while pending:
        for node in pending.pop():
            yield node
            pending.extend(_subgraphs(node))


def _subgraphs(node: ir.Node) -> list[ir.Graph]:
    found: list[ir.Graph] = []
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            found.append(attribute.as_graph())
        elif attribute.type == ir.AttributeType.GRAPHS:
            found.extend(attribute.as_graphs())
    return found


def nodes_of_iteration(body: ir.Graph, values: Mapping[ir.Value, Any]) -> int:
    """Returns a lower bound of the nodes that one iteration of ``body`` imports; ``values`` are those known outside of
    it.

    An inner loop counts as often as its constant trip count, unless a condition may end it; an If counts its smaller
    branch.
    """
    total = 0
    for node in body:
        total += 1
        inner = _subgraphs(node)
        if node.op_type == "Loop" and inner:
            total += known_trips(node, values) * nodes_of_iteration(inner[0], values)
        elif node.op_type == "If":
            total += min((nodes_of_iteration(graph, values) for graph in inner), default=0)
        else:
            total += sum(nodes_of_iteration(graph, values) for graph in inner)
    return total


def known_trips(node: ir.Node, values: Mapping[ir.Value, Any]) -> int:
    """Returns a lower bound of the trip count of a ``Loop``: its constant trip count if no condition changes,
    else 0.
    """
    body = node.attributes["body"].as_graph()
    count = node.inputs[0] if node.inputs else None
    if count is None or not known_to_go_on(body, values):
        return 0
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        first = constant_of(node.inputs[1], values)
        if first is None or not first.reshape(-1)[:1].all():
            return 0
    limit = constant_of(count, values)
    return 0 if limit is None or limit.size == 0 else max(int(limit.reshape(-1)[0]), 0)


def known_to_go_on(body: ir.Graph, values: Mapping[ir.Value, Any]) -> bool:
    """Returns whether the condition that an iteration returns is true, or the one that it was given."""
    value: ir.Value | None = body.outputs[0]
    while value is not None and (node := value.producer()) is not None and node.op_type == "Identity":
        value = node.inputs[0]
    if value is None:
        return False
    constant = constant_of(value, values)
    return value is body.inputs[1] or (constant is not None and bool(constant.reshape(-1)[:1].all()))


def constant_of(value: ir.Value, values: Mapping[ir.Value, Any]) -> np.ndarray[Any, Any] | None:
    """Returns the value of ``value`` if it is known, from ``values`` or by itself; else None."""
    known = values.get(value)
    if isinstance(known, np.ndarray):
        return known
    tensor = value.const_value
    node = value.producer()
    if tensor is None and node is not None and node.op_type == "Constant":
        if "value" in node.attributes:
            tensor = node.attributes["value"].as_tensor()
        elif "value_int" in node.attributes:
            return np.asarray(node.attributes["value_int"].as_int())
        elif "value_ints" in node.attributes:
            return np.asarray(node.attributes["value_ints"].as_ints())
        elif "value_float" in node.attributes:
            return np.asarray(node.attributes["value_float"].as_float(), np.float32)
        elif "value_floats" in node.attributes:
            return np.asarray(node.attributes["value_floats"].as_floats(), np.float32)
    return None if tensor is None else np.asarray(tensor.numpy())
