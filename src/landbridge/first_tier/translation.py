"""Translates the nodes of a graph, in the order of the file, and the branches of its Ifs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from landbridge.first_tier.call_builder import CallBuilder, ShapedValue
from landbridge.first_tier.not_taken import NotTakenError
from landbridge.first_tier.onnx_file import Node, OnnxGraph
from landbridge.first_tier.operators import TRANSLATIONS, Request


def translate(graph: OnnxGraph, opset: int, builder: CallBuilder, named: dict[str, ShapedValue]) -> None:
    """Adds the outputs of all nodes that outputs of the graph depend on to ``named``, which has what these nodes read.

    Raises NotTakenError for what has no translation.
    """
    needed = _needed(graph)
    read = {label for node in needed for label in _reads(node)} | {each.name for each in graph.outputs}
    for node in needed:
        builder.node = node.name
        try:
            operands = tuple(named[label] if label else None for label in node.inputs)
        except KeyError as error:
            raise NotTakenError(f"node {node.name!r} reads {error} before any node makes it") from error
        results = _results(node, operands, opset, builder, named, read)
        for number, label in enumerate(node.outputs):
            if number < len(results):
                named[label] = results[number]
            elif label in read:
                raise NotTakenError(f"output {number} of {node.op_type}")


def _results(
    node: Node,
    operands: tuple[ShapedValue | None, ...],
    opset: int,
    builder: CallBuilder,
    named: dict[str, ShapedValue],
    read: set[str],
) -> Sequence[ShapedValue]:
    if node.op_type == "If":
        return _chosen(node, operands, opset, builder, named)
    translation = TRANSLATIONS.get(node.op_type)
    if translation is None:
        raise NotTakenError(f"operator {node.op_type}")
    request = Request(builder, node, operands, opset, tuple(label in read for label in node.outputs))
    results = translation(request)
    request.check_all_read()
    return results


def _chosen(
    node: Node,
    operands: tuple[ShapedValue | None, ...],
    opset: int,
    builder: CallBuilder,
    named: dict[str, ShapedValue],
) -> Sequence[ShapedValue]:
    """Returns the outputs of the branch that an If takes; where a run decides that, both are computed and one of each
    two outputs is chosen.

    Kernels only compute their results and end for any elements, so that nothing else shows which branch ran.
    """
    branches = [node.attributes.get(name) for name in ("then_branch", "else_branch")]
    condition = operands[0] if len(operands) == 1 else None
    if len(node.attributes) != 2 or condition is None or condition.dtype != "bool" or prod(condition.shape) != 1:
        raise NotTakenError("an If of another form")
    if condition.constant is not None:
        return _outputs(branches[0 if condition.constant.reshape(())[()] else 1], opset, builder, named)
    both = [_outputs(each, opset, builder, named) for each in branches]
    if [(v.shape, v.dtype) for v in both[0]] != [(v.shape, v.dtype) for v in both[1]]:
        raise NotTakenError("an If whose branches give other shapes, and whose condition a run computes")
    builder.node = node.name
    chosen = builder.view(condition, ())
    return [
        result
        for one, other in zip(*both, strict=True)
        for result in builder.call("Where", [chosen, one, other], [(one.shape, one.dtype)])
    ]


def _outputs(branch: object, opset: int, builder: CallBuilder, named: dict[str, ShapedValue]) -> list[ShapedValue]:
    """Returns the outputs of ``branch``, which reads the values ``named`` around it."""
    if not isinstance(branch, OnnxGraph) or branch.inputs:
        raise NotTakenError("an If of another form")
    inner = named | {label: builder.constant(array) for label, array in branch.constants.items()}
    translate(branch, opset, builder, inner)
    return [inner[each.name] for each in branch.outputs]


def _needed(graph: OnnxGraph) -> list[Node]:
    """Returns the nodes that the outputs depend on, in the order of the file."""
    wanted = {each.name for each in graph.outputs}
    found = []
    for node in reversed(graph.nodes):
        if not wanted.isdisjoint(node.outputs):
            found.append(node)
            wanted.update(_reads(node))
    return found[::-1]


def _reads(node: Node) -> Iterator[str]:
    """Yields the names that ``node`` reads, also in its branches, where some are of values of these."""
    yield from filter(None, node.inputs)
    for branch in node.attributes.values():
        if isinstance(branch, OnnxGraph):
            yield from (each.name for each in branch.outputs)
            for inner in branch.nodes:
                yield from _reads(inner)
