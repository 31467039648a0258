"""Finds by structure which positions continue the steps of a cache, and the input of the model that they come from.

``first + (0, 1, 2, ...)`` and ``Range(first, last, 1)`` are one step after the other, from an input of one element on,
as transformers counts them. Positions that are an input themselves continue a cache where the model also compares them
with all positions of it, as a causal mask does. Others may be any slots, as those of a ring buffer are.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from landbridge.records import record

#: Operators whose result has the elements of their first operand, in order.
_SAME_ELEMENTS = frozenset({"Unsqueeze", "Squeeze", "Reshape", "Flatten", "Cast", "Identity"})
_COMPARISONS = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)


@record(frozen=True)
class AppendedPositions:
    """``input`` of the model has the position of each step, or, unless ``has_each``, that of the first alone."""

    input: ir.Value
    has_each: bool


def appended_positions(graph: ir.Graph, positions: ir.Value, capacity: object) -> AppendedPositions | None:
    """Returns where ``positions`` of steps come from, if they continue a cache of ``capacity`` steps; else None."""
    value = _same_elements(positions)
    first = _first_of(value)
    if first is not None:
        return AppendedPositions(first, has_each=False)
    if _is_input(value) and any(_compares(node, value, capacity) for node in graph):
        return AppendedPositions(value, has_each=True)
    return None


def _first_of(value: ir.Value) -> ir.Value | None:
    """Returns the input of one element from which on ``value`` counts."""
    node = _node_of(value)
    if node is not None and node.op_type == "Range":
        start, _, step = node.inputs
        is_each = start is not None and step is not None and _constant(step) == [1]
        return _one_element(start) if start is not None and is_each else None
    if node is None or node.op_type != "Add":
        return None
    operands = [operand for operand in node.inputs if operand is not None]
    for first, steps in (operands, operands[::-1]):
        if _counts_from_zero(_same_elements(steps)) and (found := _one_element(first)) is not None:
            return found
    return None


def _one_element(value: ir.Value) -> ir.Value | None:
    """Returns the input of the model that is ``value``, if it has one element."""
    found = _same_elements(value)
    shape = found.shape
    is_one = shape is not None and all(extent == 1 for extent in shape)
    return found if is_one and _is_input(found) else None


def _counts_from_zero(value: ir.Value) -> bool:
    node = _node_of(value)
    if node is not None and node.op_type == "Range":
        start, _, step = node.inputs
        return start is not None and step is not None and _constant(start) == [0] and _constant(step) == [1]
    numbers = _constant(value)
    return numbers is not None and numbers == list(range(len(numbers)))


def _compares(node: ir.Node, positions: ir.Value, capacity: object) -> bool:
    """Returns whether ``node`` compares ``positions`` with 0, 1, 2, ... to ``capacity``."""
    if node.op_type not in _COMPARISONS or node.domain not in ("", "ai.onnx"):
        return False
    operands = [_same_elements(operand) for operand in node.inputs if operand is not None]
    others = [operand for operand in operands if operand is not positions]
    if len(operands) != 2 or len(others) != 1 or not _counts_from_zero(others[0]):
        return False
    numbers = _constant(others[0])
    return numbers is None or not isinstance(capacity, int) or len(numbers) == capacity


def _same_elements(value: ir.Value) -> ir.Value:
    """Returns the value that ``value`` has the elements of, in the same order."""
    node = _node_of(value)
    while node is not None and node.op_type in _SAME_ELEMENTS and node.inputs[0] is not None:
        value = node.inputs[0]
        node = _node_of(value)
    return value


def _node_of(value: ir.Value) -> ir.Node | None:
    node = value.producer()
    return node if node is not None and node.domain in ("", "ai.onnx") else None


def _is_input(value: ir.Value) -> bool:
    return value.is_graph_input() and not value.is_initializer() and value.dtype in _INTEGERS


def _constant(value: ir.Value) -> list[int] | None:
    """Returns the integers of a constant, whatever its shape; None for other values."""
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is None:
        return None
    numbers = tensor.numpy()
    return numbers.reshape(-1).tolist() if np.issubdtype(numbers.dtype, np.integer) else None
