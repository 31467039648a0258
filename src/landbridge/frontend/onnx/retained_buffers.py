"""Keeps states that grow by Concat in buffers of fixed capacity: new elements are inserted after the present ones.

``present = Concat(past, new)``, where ``alias=`` requests that present has the memory of past, becomes::

    present = Append(past, new, length)      the buffer, with the capacity of past
    total   = LengthAfter(length, new, past) refused if it exceeds the capacity
    past    = InUse(past, length)            what other nodes read of past; its shape is total less what is new
    present = InUse(present, total)          what other nodes read of present

``length``, an int64 [1], is a new input of the model: the length before a run. It has the name that the dimension had,
or one after the first of the states that share it.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

#: By operator that keeps its cache by a Concat: the places of past keys and values among its inputs, of which the
#: outputs from 1 on are what is kept, the place of a length that it has already (None: it has none), of the one that it
#: gets, and the axis of steps. Keys and values may be one cache of (2, batch, heads, steps, size).
_CACHES: dict[str, tuple[tuple[int, ...], int | None, int, int]] = {
    "MultiHeadAttention": ((6, 7), 8, 10, 2),
    "DecoderMaskedMultiHeadAttention": ((5, 6), 7, 11, 2),
    "Attention": ((4,), 6, 7, 3),
    "QAttention": ((8,), None, 9, 3),
}


def has_cache(node: ir.Node, past: ir.Value, output: ir.Value) -> bool:
    """Returns whether ``output`` is ``past`` with the steps of ``node`` appended, by a node that keeps no length."""
    if node.domain != "com.microsoft" or node.op_type not in _CACHES:
        return False
    places, length, at, _ = _CACHES[node.op_type]
    given = [*node.inputs, *[None] * (at + 1)]
    presents = list(node.outputs)[1:]
    return (length is None or given[length] is None) and any(
        given[place] is past and number < len(presents) and presents[number] is output
        for number, place in enumerate(places)
    )


def keep_in_buffers(graph: ir.Graph, alias: Mapping[str, str], *, together: bool = False) -> None:
    """Keep each state of ``alias`` (outputs to inputs, by name) that ``graph`` computes by such a Concat in its
    buffer.

    ``together``: states that grow by the same extent share one length, whatever names their dimensions have.
    """
    inputs = {value.name: value for value in graph.inputs}
    lengths: dict[object, ir.Value] = {}
    by_growth: dict[object, tuple[ir.Value, object]] = {}
    for output in graph.outputs:
        past, node = inputs.get(alias.get(output.name or "", "")), output.producer()
        if past is None or node is None:
            continue
        if has_cache(node, past, output) and past.shape is not None:
            axis = _CACHES[node.op_type][3]
            _give_length(graph, node, past, _length(graph, past, axis, lengths, None), axis)
            continue
        if node.op_type != "Concat" or node.domain not in ("", "ai.onnx"):
            continue
        if len(node.inputs) == 2 and node.inputs[0] is past and past.shape is not None:
            axis = node.attributes["axis"].as_int() % len(past.shape)
            growth = _extent(node.inputs[1], axis) if together else None
            length = _length(graph, past, axis, lengths, by_growth.get(growth))
            if growth is not None:
                by_growth.setdefault(growth, (length, _extent(past, axis)))
            _keep(graph, node, past, output, length, axis)


def _keep(graph: ir.Graph, node: ir.Node, past: ir.Value, output: ir.Value, length: ir.Value, axis: int) -> None:
    new = node.inputs[1]
    uses = [use for use in past.uses() if use.node is not node]
    later = list(output.uses())
    created: list[ir.Node] = []

    def op(kind: str, given: list[ir.Value | None], suffix: str = "", **facts: int) -> ir.Value:
        name = f"{output.name}.{kind}{suffix}"
        found = ir.node(kind, given, {"axis": axis, **facts}, domain="landbridge", name=name, num_outputs=1)
        found.outputs[0].name = f"{name}.0"
        created.append(found)
        return found.outputs[0]

    counted = _counted(graph, new, axis)
    if counted is not None:  # what others read of past may be before this node, and the length after a run with it
        source, at = counted
        total = op("LengthAfter", [length, source, past], new_axis=at)
        for number, use in enumerate(uses):
            if use.node.op_type == "Shape" and use.node.domain in ("", "ai.onnx"):
                part = {name: use.node.attributes[name].as_int() for name in use.node.attributes}
                shape = op("ShapeBefore", [past, total, source], f".{number}", new_axis=at, **part)
                for reader in list(use.node.outputs[0].uses()):
                    reader.node.replace_input_with(reader.idx, shape)
        uses = [use for use in past.uses() if use.node is not node and use.node not in created]
    before = op("InUse", [past, length], ".past") if uses else None
    graph.insert_before(graph[0], created)
    created.clear()
    present = op("Append", [past, new, length])
    if counted is None:
        total = op("LengthAfter", [length, new, past])
    after = op("InUse", [present, total])
    graph.insert_before(node, created)
    for found, value in ((uses, before), (later, after)):
        for use in found:
            use.node.replace_input_with(use.idx, value)
    graph.outputs[list(graph.outputs).index(output)] = present
    present.type, present.shape, name = past.type, past.shape, output.name
    graph.remove(node, safe=True)
    output.name, present.name = None, name


def _give_length(graph: ir.Graph, node: ir.Node, past: ir.Value, length: ir.Value, axis: int) -> None:
    """Let ``node``, attention with ``past`` in a buffer, and what else reads that, know its ``length`` along
    ``axis``.
    """
    at = _CACHES[node.op_type][2]
    if len(node.inputs) <= at:
        node.resize_inputs(at + 1)
    node.replace_input_with(at, length)
    uses = [use for use in past.uses() if use.node is not node]
    if uses:
        read = ir.node("InUse", [past, length], {"axis": axis}, domain="landbridge", name=f"{past.name}.InUse")
        read.outputs[0].name = f"{past.name}.InUse.0"
        graph.insert_before(graph[0], read)
        for use in uses:
            use.node.replace_input_with(use.idx, read.outputs[0])


def _counted(graph: ir.Graph, new: ir.Value | None, axis: int) -> tuple[ir.Value, int] | None:
    """Returns an input of ``graph`` and its axis with the extent of ``new`` along ``axis``; None if there is none."""
    extent = _extent(new, axis)
    for value in graph.inputs if isinstance(extent, str) else ():
        for at in range(len(value.shape or ())):
            if _extent(value, at) == extent:
                return value, at
    return None


def _extent(value: ir.Value | None, axis: int) -> object:
    """Returns the extent of ``value`` along ``axis``, a name or a number; None if it is not known."""
    if value is None or value.shape is None:
        return None
    extent = value.shape[axis]
    return extent if isinstance(extent, int) else extent.value


def _length(
    graph: ir.Graph, past: ir.Value, axis: int, lengths: dict[object, ir.Value], shared: tuple[ir.Value, object] | None
) -> ir.Value:
    """Returns the input with the length along ``axis`` of ``past``, whose dimension becomes the capacity.

    ``lengths`` has the inputs of other states, by their former dimension: a name or a number. ``shared``: the input of
    a state that always has the same length, and the capacity of that state.
    """
    assert past.shape is not None
    extent = past.shape[axis]
    was = extent if isinstance(extent, int) else extent.value
    capacity = was if isinstance(was, int) else f"{was or past.name}.capacity"
    if isinstance(was, str) and shared is not None and isinstance(shared[1], str):
        capacity = shared[1]
    past.shape = ir.Shape([capacity if a == axis else e for a, e in enumerate(past.shape)])
    if was in lengths:
        return lengths[was]
    if shared is not None:
        lengths[was] = shared[0]
        return shared[0]
    taken = {value.name for value in (*graph.inputs, *(each for node in graph for each in node.outputs))}
    name = was if isinstance(was, str) and was not in taken else f"{past.name}.length"
    created = ir.Value(name=name, shape=ir.Shape([1]), type=ir.TensorType(ir.DataType.INT64))
    graph.inputs.append(created)
    if was is not None:
        lengths[was] = created
    return created
