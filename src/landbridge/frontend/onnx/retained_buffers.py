"""States that grow by Concat, kept in a buffer that has room: what is new is put in behind what there is.

``present = Concat(past, new)``, where ``alias=`` says that present is the memory of past, becomes::

    present = Append(past, new, length)      the buffer, of the room that past has
    total   = LengthAfter(length, new, past) refused where it is more than that room
    past    = InUse(past, length)            what others read of past
    present = InUse(present, total)          what others read of present

``length``, an int64 [1], is a new input of the model: how many there are before a run. It is called as the dimension
that it was, or after the first of the states of one length, which share it.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir


def keep_rooms(graph: ir.Graph, alias: Mapping[str, str]) -> None:
    """Keep each state of ``alias``, outputs to inputs by name, that ``graph`` makes by such a Concat in its room."""
    inputs = {value.name: value for value in graph.inputs}
    lengths: dict[object, ir.Value] = {}
    for output in graph.outputs:
        past, node = inputs.get(alias.get(output.name or "", "")), output.producer()
        if past is None or node is None or node.op_type != "Concat" or node.domain not in ("", "ai.onnx"):
            continue
        if len(node.inputs) == 2 and node.inputs[0] is past and past.shape is not None:
            _keep(graph, node, past, output, lengths)


def _keep(graph: ir.Graph, node: ir.Node, past: ir.Value, output: ir.Value, lengths: dict[object, ir.Value]) -> None:
    assert past.shape is not None
    new = node.inputs[1]
    axis = node.attributes["axis"].as_int() % len(past.shape)
    length = _length(graph, past, axis, lengths)
    uses = [use for use in past.uses() if use.node is not node]
    later = list(output.uses())
    created: list[ir.Node] = []

    def op(kind: str, given: list[ir.Value | None]) -> ir.Value:
        found = ir.node(kind, given, {"axis": axis}, domain="landbridge", name=f"{output.name}.{kind}", num_outputs=1)
        found.outputs[0].name = f"{output.name}.{kind}.0"
        created.append(found)
        return found.outputs[0]

    present = op("Append", [past, new, length])
    total = op("LengthAfter", [length, new, past])
    before = op("InUse", [past, length]) if uses else None
    after = op("InUse", [present, total])
    graph.insert_before(node, created)
    for found, value in ((uses, before), (later, after)):
        for use in found:
            use.node.replace_input_with(use.idx, value)
    graph.outputs[list(graph.outputs).index(output)] = present
    present.type, present.shape, name = past.type, past.shape, output.name
    graph.remove(node, safe=True)
    output.name, present.name = None, name


def _length(graph: ir.Graph, past: ir.Value, axis: int, lengths: dict[object, ir.Value]) -> ir.Value:
    """The input that says how many there are along ``axis`` of ``past``, whose dimension becomes its room.

    ``lengths`` has those of other states, by what the dimension was: a name or a number.
    """
    assert past.shape is not None
    extent = past.shape[axis]
    was = extent if isinstance(extent, int) else extent.value
    capacity = was if isinstance(was, int) else f"{was or past.name}.room"
    past.shape = ir.Shape([capacity if a == axis else e for a, e in enumerate(past.shape)])
    if was in lengths:
        return lengths[was]
    taken = {value.name for value in (*graph.inputs, *(each for node in graph for each in node.outputs))}
    name = was if isinstance(was, str) and was not in taken else f"{past.name}.length"
    created = ir.Value(name=name, shape=ir.Shape([1]), type=ir.TensorType(ir.DataType.INT64))
    graph.inputs.append(created)
    if was is not None:
        lengths[was] = created
    return created
