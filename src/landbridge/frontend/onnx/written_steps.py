"""Steps that are written at positions along an axis, as exporters write ``index_copy`` and a StaticCache::

    Transpose(ScatterND(Transpose(past), Unsqueeze(positions), Transpose(new)))
    ScatterND(past, Unsqueeze(positions), new)
    ScatterElements<axis = 2>(past, Expand(Reshape(positions)), new)

becomes ``WriteSteps(past, positions, new)`` along that axis, which writes the steps where they belong: the cache is
neither transposed nor copied. It also says how the cache grows, where its positions continue the steps so far. The two
forms without a Transpose are left alone where they do not.

Which axes indices have follows from shapes that the model declares, else from those that onnx infers. Extents that are
not known are those of a legal update: as many positions as new steps, and all of the other axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from landbridge.frontend.onnx.appended_positions import AppendedPositions, appended_positions
from landbridge.frontend.onnx.inferred_extents import inferred_extents
from landbridge.frontend.onnx.replaced_values import take_place
from landbridge.process.locks import cached_property


class _Shapes:
    """The shapes of values of ``graph``: those that it declares, else those that onnx infers, None for an extent that
    is not a number; ``shapes``: those that the caller gives to inputs.
    """

    def __init__(self, graph: ir.Graph, shapes: Mapping[str, Sequence[int | str]]) -> None:
        self._graph, self._shapes = graph, shapes

    @cached_property
    def _inferred(self) -> Mapping[str, tuple[int | str | None, ...]]:
        return inferred_extents(self._graph, self._shapes)

    def of(self, value: ir.Value) -> tuple[int | None, ...] | None:
        """Returns the shape of ``value``; None where its rank is not known."""
        shape = self._inferred.get(value.name or "") if value.shape is None else value.shape
        return None if shape is None else tuple(extent if isinstance(extent, int) else None for extent in shape)


def write_steps_in_place(graph: ir.Graph, shapes: Mapping[str, Sequence[int | str]]) -> None:
    """Replace each such node of ``graph`` by a WriteSteps along the axis that is scattered; ``shapes``: those that the
    caller gives to inputs.
    """
    known = _Shapes(graph, shapes)
    for node in list(graph):
        if node.domain not in ("", "ai.onnx") or node.attributes.get("reduction") is not None:
            continue
        if node.op_type == "Transpose":
            _replace_transposed(graph, node, known)
        elif node.op_type in ("ScatterND", "ScatterElements") and None not in node.inputs:
            _replace_plain(graph, node, known)


def _replace_plain(graph: ir.Graph, scatter: ir.Node, shapes: _Shapes) -> None:
    buffer, indices, new = (operand for operand in scatter.inputs if operand is not None)
    if not buffer.is_graph_input():
        return
    created: list[ir.Node] = []
    if scatter.op_type == "ScatterND":
        axis, positions = 0, _positions(indices, scatter, created, shapes)
    else:
        axis = scatter.attributes.get_int("axis", 0) % (1 if buffer.shape is None else len(buffer.shape))
        positions = _expanded_positions(indices, buffer, axis, scatter, created, shapes)
    if positions is None:
        return
    appended = _appended(graph, buffer, positions, axis)
    if appended is not None:
        write = _write_steps([buffer, positions, new], appended, axis, scatter)
        _insert(graph, scatter, [*created, write])


def _replace_transposed(graph: ir.Graph, back: ir.Node, shapes: _Shapes) -> None:
    scatter = _producer(back.inputs[0], "ScatterND")
    if scatter is None or len(scatter.inputs) != 3 or scatter.attributes.get("reduction") is not None:
        return
    front, indices, new = _producer(scatter.inputs[0], "Transpose"), scatter.inputs[1], scatter.inputs[2]
    if front is None or front.inputs[0] is None or indices is None or new is None:
        return
    there, again = _perm(front), _perm(back)
    if there is None or again is None or [there[a] for a in again] != list(range(len(there))):
        return
    axis, steps = there[0], _producer(new, "Transpose")
    created: list[ir.Node] = []
    positions = _positions(indices, scatter, created, shapes)
    if positions is None:
        return
    if steps is not None and steps.inputs[0] is not None and _perm(steps) == there:
        update = steps.inputs[0]
    else:
        transposed = ir.node("Transpose", [new], {"perm": again}, name=f"{back.name}.new")
        transposed.outputs[0].name = f"{back.outputs[0].name}.new"
        created.append(transposed)
        update = transposed.outputs[0]
    appended = _appended(graph, front.inputs[0], positions, axis)
    write = _write_steps([front.inputs[0], positions, update], appended, axis, scatter)
    _insert(graph, back, [*created, write])


def _appended(graph: ir.Graph, buffer: ir.Value, positions: ir.Value, axis: int) -> AppendedPositions | None:
    return appended_positions(graph, positions, None if buffer.shape is None else buffer.shape[axis])


def _write_steps(
    operands: Sequence[ir.Value], appended: AppendedPositions | None, axis: int, scatter: ir.Node
) -> ir.Node:
    """Returns a WriteSteps of ``operands``, buffer, positions and new steps, in place of ``scatter``."""
    facts = {"axis": axis, "has_each": int(appended is not None and appended.has_each)}
    given = operands if appended is None else [*operands, appended.input]
    return ir.node("WriteSteps", given, facts, domain="landbridge", name=scatter.name)


def _insert(graph: ir.Graph, node: ir.Node, created: Sequence[ir.Node]) -> None:
    """Let the last of ``created`` give what ``node`` gives."""
    graph.insert_before(node, created)
    take_place(graph, node.outputs[0], created[-1].outputs[0])
    graph.remove(node, safe=True)


def _producer(value: ir.Value | None, kind: str) -> ir.Node | None:
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type == kind and node.domain in ("", "ai.onnx") else None


def _positions(indices: ir.Value, scatter: ir.Node, created: list[ir.Node], shapes: _Shapes) -> ir.Value | None:
    """Returns the positions [S] of ``indices`` [S, 1], by nodes that are ``created`` where they have no other form;
    None for other indices.
    """
    node = _producer(indices, "Unsqueeze")
    if node is not None and len(node.inputs) == 2 and node.inputs[0] is not None and node.inputs[1] is not None:
        axes = ir.convenience.get_const_tensor(node.inputs[1])
        if axes is not None and axes.numpy().reshape(-1).tolist() in ([1], [-1]):
            shape = shapes.of(node.inputs[0])
            if shape is not None and len(shape) == 1:
                return node.inputs[0]
    shape = shapes.of(indices)
    return None if shape is None or len(shape) != 2 or shape[1] != 1 else _as_row(indices, scatter, created)


def _expanded_positions(
    indices: ir.Value, buffer: ir.Value, axis: int, scatter: ir.Node, created: list[ir.Node], shapes: _Shapes
) -> ir.Value | None:
    """Returns the positions [S] of ``indices`` that differ along ``axis`` alone and cover all other axes of ``buffer``;
    None for others.
    """
    node = _producer(indices, "Expand")
    row = None if node is None else node.inputs[0]
    if row is None:
        return None
    of_row, of_indices, of_buffer = (shapes.of(each) for each in (row, indices, buffer))
    if of_row is None or of_buffer is None or len(of_row) != len(of_buffer):
        return None
    if of_indices is None:
        of_indices = (None,) * len(of_buffer)
    if len(of_indices) != len(of_buffer) or _differ(of_row[axis], of_indices[axis]):
        return None
    if of_row[axis] == 1 != of_indices[axis]:  # perhaps one position for several steps
        return None
    others = [a for a in range(len(of_row)) if a != axis]
    if any(of_row[a] != 1 or _differ(of_indices[a], of_buffer[a]) for a in others):
        return None
    return _as_row(row, scatter, created)


def _differ(one: int | None, other: int | None) -> bool:
    """Returns whether two extents are numbers that differ."""
    return one is not None and other is not None and one != other


def _as_row(value: ir.Value, scatter: ir.Node, created: list[ir.Node]) -> ir.Value:
    """Returns the elements of ``value`` along one axis, by nodes that are ``created``."""
    shape = ir.node("Constant", [], {"value_ints": [-1]}, name=f"{scatter.name}.Constant")
    row = ir.node("Reshape", [value, shape.outputs[0]], name=f"{scatter.name}.Reshape")
    for node in (shape, row):
        node.outputs[0].name = node.name
    created += shape, row
    return row.outputs[0]


def _perm(node: ir.Node) -> Sequence[int] | None:
    perm = node.attributes.get("perm")
    return None if perm is None else list(perm.as_ints())
