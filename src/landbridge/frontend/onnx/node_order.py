"""Sorts the nodes of a ModelProto topologically, as the format requires."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from landbridge.errors import ImportModelError

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

    #: The messages that contain nodes.
    Nodes: TypeAlias = GraphProto | FunctionProto

#: The most nodes of a cycle that an error names.
_LISTED = 5


def sort_nodes(proto: ModelProto) -> list[str]:
    """Sort the nodes of graphs and functions of ``proto``, subgraphs included, if they are not in topological order.

    Returns the names of the graphs and functions that were sorted. Nodes keep their order as far as possible. Raises
    ImportModelError if nodes form a cycle.
    """
    return [str(nodes.name) for nodes in all_nodes(proto) if _sort(nodes)]


def all_nodes(proto: ModelProto) -> Iterator[Nodes]:
    """Yields the graphs and functions of ``proto``, subgraphs included."""
    yield proto.graph
    yield from _inside(proto.graph)
    for function in proto.functions:
        yield function
        yield from _inside(function)


def _inside(nodes: Nodes) -> Iterator[Nodes]:
    """Yields the graphs in nodes of ``nodes``, at any depth."""
    for node in nodes.node:
        for graph in graphs_of(node):
            yield graph
            yield from _inside(graph)


def graphs_of(node: NodeProto) -> Iterator[GraphProto]:
    """Yields the graphs that are attributes of ``node``."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _sort(nodes: Nodes) -> bool:
    """Sort the nodes of one graph or function; returns whether their order changed."""
    makers = {name: number for number, node in enumerate(nodes.node) for name in node.output if name}
    needs = [{makers[name] for name in _read(node) if name in makers} for node in nodes.node]
    if all(other < number for number, others in enumerate(needs) for other in others):
        return False
    readers: list[list[int]] = [[] for _ in needs]
    for number, others in enumerate(needs):
        for other in others:
            readers[other].append(number)
    missing = [len(others) for others in needs]
    ready = [number for number, count in enumerate(missing) if not count]
    heapify(ready)
    places: dict[int, int] = {}
    while ready:
        number = heappop(ready)
        places[number] = len(places)
        for reader in readers[number]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, reader)
    if len(places) < len(needs):
        stuck = [node for number, node in enumerate(nodes.node) if number not in places][:_LISTED]
        listed = ", ".join(repr(node.name or next(iter(node.output), node.op_type)) for node in stuck)
        raise ImportModelError(
            f"nodes of {nodes.name!r} need each other's results in a cycle, so that none can be first: {listed}"
        )
    in_order = (places[number] for number in range(len(needs)))
    nodes.node.sort(key=lambda _: next(in_order))  # sorted() computes the keys in the order of the nodes
    return True


def _read(node: NodeProto) -> set[str]:
    """Returns the names of values that ``node`` reads, or that graphs inside it read from the enclosing graph."""
    read = {name for name in node.input if name}
    for graph in graphs_of(node):
        read |= _captured(graph)
    return read


def _captured(graph: GraphProto) -> set[str]:
    owned: Iterable[str] = (
        *(value.name for value in graph.input),
        *(tensor.name for tensor in graph.initializer),
        *(tensor.values.name for tensor in graph.sparse_initializer),
        *(name for node in graph.node for name in node.output),
    )
    read = {value.name for value in graph.output}.union(*map(_read, graph.node))
    return read.difference(owned)
