"""Steps that are written at positions along an inner axis, as torch exports ``index_copy`` and a StaticCache::

    Transpose(ScatterND(Transpose(past), Unsqueeze(positions), Transpose(new)))

becomes ``WriteSteps(past, positions, new)`` along that axis, which writes the steps where they belong: the cache is
neither transposed nor copied.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir


def write_steps_in_place(graph: ir.Graph) -> None:
    """Replace each such Transpose of ``graph`` by a WriteSteps along the axis that is scattered."""
    for node in list(graph):
        if node.op_type == "Transpose" and node.domain in ("", "ai.onnx"):
            _replace(graph, node)


def _replace(graph: ir.Graph, back: ir.Node) -> None:
    scatter = _producer(back.inputs[0], "ScatterND")
    if scatter is None or len(scatter.inputs) != 3 or scatter.attributes.get("reduction") is not None:
        return
    front, positions = _producer(scatter.inputs[0], "Transpose"), _positions(scatter.inputs[1])
    new = scatter.inputs[2]
    if front is None or positions is None or new is None:
        return
    there, again = _perm(front), _perm(back)
    if there is None or again is None or [there[a] for a in again] != list(range(len(there))):
        return
    axis, steps = there[0], _producer(new, "Transpose")
    created: list[ir.Node] = []
    if steps is not None and _perm(steps) == there:
        update = steps.inputs[0]
    else:
        transposed = ir.node("Transpose", [new], {"perm": again}, name=f"{back.name}.new")
        transposed.outputs[0].name = f"{back.outputs[0].name}.new"
        created.append(transposed)
        update = transposed.outputs[0]
    facts = {"axis": axis, "appends": int("pos" in (positions.name or "").lower())}
    write = ir.node("WriteSteps", [front.inputs[0], positions, update], facts, domain="landbridge", name=scatter.name)
    written, old = write.outputs[0], back.outputs[0]
    written.type, written.shape = old.type, old.shape
    graph.insert_before(back, [*created, write])
    for use in list(old.uses()):
        use.node.replace_input_with(use.idx, written)
    for at, output in enumerate(graph.outputs):
        if output is old:
            graph.outputs[at] = written
    name = old.name
    graph.remove(back, safe=True)
    old.name, written.name = None, name


def _producer(value: ir.Value | None, kind: str) -> ir.Node | None:
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type == kind and node.domain in ("", "ai.onnx") else None


def _positions(indices: ir.Value | None) -> ir.Value | None:
    """Returns the positions [S] of ``indices`` [S, 1]; None for other indices."""
    node = _producer(indices, "Unsqueeze")
    if node is None or len(node.inputs) != 2 or node.inputs[0] is None or node.inputs[1] is None:
        return None
    found, axes = node.inputs[0], ir.convenience.get_const_tensor(node.inputs[1])
    if found.shape is None or len(found.shape) != 1 or axes is None:
        return None
    return found if axes.numpy().reshape(-1).tolist() in ([1], [-1]) else None


def _perm(node: ir.Node) -> Sequence[int] | None:
    perm = node.attributes.get("perm")
    return None if perm is None else list(perm.as_ints())
