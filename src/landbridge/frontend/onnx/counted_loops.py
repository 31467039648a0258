"""Computes the trip count of loops whose condition compares a counter with a limit, as exported while loops do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from landbridge.frontend.onnx.unfolded_size import constant_of
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, at_least, ceildiv, largest, smallest

#: Operators that pass a number on. A counter of iterations is too small to be rounded as a float.
_HANDED_ON = ("Cast", "Identity", "Squeeze", "Unsqueeze", "Reshape")


def counted_trips(
    body: ir.Graph, inputs: Sequence[ir.Value | None], known: Mapping[ir.Value, Any], most: Extent | None
) -> Extent | None:
    """Returns the trip count of a ``Loop`` over ``body`` with ``inputs``, whose trip count input is ``most``.

    Returns None unless its condition is a conjunction of comparisons of counters with limits that are known before it
    begins, and is known to hold at first.
    """
    begins = inputs[1]
    if begins is not None and not _holds(begins, known):
        return None
    limits = _Counted(body, inputs, known).limits()
    return None if any(each is None for each in limits) else _least(*limits, most)


def most_trips(
    body: ir.Graph, inputs: Sequence[ir.Value | None], known: Mapping[ir.Value, Any], most: Extent | None
) -> Extent | None:
    """Returns an upper bound of the trip count of a ``Loop`` over ``body``, whatever else may end it; None if there is
    none.
    """
    return _least(*_Counted(body, inputs, known).limits(), most)


def _least(*limits: Extent | None) -> Extent | None:
    known = [each for each in limits if each is not None]
    return smallest(*known) if known else None


@record(frozen=True, eq=False)
class _Counted:
    body: ir.Graph
    inputs: Sequence[ir.Value | None]
    known: Mapping[ir.Value, Any]

    def limits(self) -> list[Extent | None]:
        """Returns the trip count by each part of the condition; None for a part that is not a comparison of a
        counter.
        """
        return [self.trips(each) for each in _conjunction(self.body.outputs[0], self.known)]

    def trips(self, condition: ir.Value | None) -> Extent | None:
        """Returns the trip count if each iteration ends with ``condition``; None if it is not a comparison of a
        counter.
        """
        sides = _below(condition)
        if sides is None:
            return None
        counter = self._counter(sides[0])
        most = self._outside(sides[1])
        if counter is None or most is None:
            return None
        first, step = counter
        return largest(0, ceildiv(most - first, step)) + 1

    def _counter(self, value: ir.Value | None) -> tuple[Extent, int] | None:
        """Returns the value of ``value`` in the first iteration and its increment per iteration; None if it is not a
        counter.
        """
        value, more = sum_of(value, self.known)
        if value is self.body.inputs[0]:
            return more, 1
        number = self._carried(value)
        if number is None:
            return None
        before, step = sum_of(self.body.outputs[number - 1], self.known)
        first = _number(self.inputs[number], self.known)
        return None if before is not value or step < 1 or first is None else (first + more, step)

    def _outside(self, value: ir.Value | None) -> Extent | None:
        """Returns the value of ``value``, if it is the same in all iterations and known; else None."""
        value, more = sum_of(value, self.known)
        number = self._carried(value)
        if number is not None:
            if sum_of(self.body.outputs[number - 1], self.known) != (value, 0):
                return None
            value = self.inputs[number]
        found = _number(value, self.known)
        return None if found is None else found + more

    def _carried(self, value: ir.Value | None) -> int | None:
        """Returns the input of the loop that is the first value of ``value``, an input of the body; None if it is no
        carried value.
        """
        return next((i for i, each in enumerate(self.body.inputs) if i > 1 and each is value), None)


def _conjunction(value: ir.Value | None, known: Mapping[ir.Value, Any]) -> list[ir.Value | None]:
    root, more = sum_of(value, known)  # exporters add 0 to carried values
    node = None if more else _created_by(root)
    if node is not None and node.op_type == "And":
        return [each for side in node.inputs for each in _conjunction(side, known)]
    return [value if more else root]


def _below(value: ir.Value | None) -> tuple[ir.Value | None, ir.Value | None] | None:
    """Returns the two operands of a ``Less``, the smaller first; None if ``value`` is not a comparison."""
    node = _created_by(value)
    if node is None or node.op_type not in ("Less", "Greater"):
        return None
    left, right = node.inputs
    return (left, right) if node.op_type == "Less" else (right, left)


def _holds(value: ir.Value, known: Mapping[ir.Value, Any]) -> bool:
    """Returns whether the condition ``value`` is known to be true before the loop begins."""
    found = known.get(value)
    if isinstance(found, np.ndarray):
        return bool(found.size == 1 and found.dtype == bool and found.reshape(-1)[0])
    for each in _conjunction(value, known):
        sides = _below(each)
        if sides is None:
            return False
        low, high = (_number(side, known) for side in sides)
        if low is None or high is None or not at_least(high, low + 1):
            return False
    return True


def sum_of(value: ir.Value | None, known: Mapping[ir.Value, Any]) -> tuple[ir.Value | None, int]:
    """Returns the value that ``value`` is computed from by adding constants, and their sum; the value itself and 0 if
    none is added.
    """
    more = 0
    while (node := _created_by(value)) is not None:
        if node.op_type in _HANDED_ON:
            value = node.inputs[0]
            continue
        if node.op_type != "Add":
            break
        sides = zip(node.inputs, node.inputs[::-1], strict=True)
        added = next(((one, n) for one, other in sides if isinstance(n := _number(other, known), int)), None)
        if added is None:
            break
        value, more = added[0], more + added[1]
    return value, more


def _number(value: ir.Value | None, known: Mapping[ir.Value, Any]) -> Extent | None:
    """Returns the one number that ``value`` is known to be; None if it is not known."""
    while value is not None:
        found = constant_of(value, known)
        if found is not None:
            return _whole(found)
        value = _one_on(value)
    return None


def _whole(array: np.ndarray[Any, Any]) -> Extent | None:
    if array.size != 1:
        return None
    number = array.reshape(-1)[0]
    if isinstance(number, Size):
        return number
    return int(number) if np.isfinite(number) and number == int(number) else None


def _one_on(value: ir.Value | None) -> ir.Value | None:
    node = _created_by(value)
    return node.inputs[0] if node is not None and node.op_type in _HANDED_ON else None


def _created_by(value: ir.Value | None) -> ir.Node | None:
    return None if value is None else value.producer()
