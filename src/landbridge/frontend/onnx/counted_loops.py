"""Loops whose condition compares a counter with a limit, as those have that were a while loop: how often they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from landbridge.frontend.onnx.unfolded_size import constant_of
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, at_least, ceildiv, largest, smallest

#: Operators that hand a number on. What counts trips is far from where a float rounds integers.
_HANDED_ON = ("Cast", "Identity", "Squeeze", "Unsqueeze", "Reshape")


def counted_trips(
    body: ir.Graph, inputs: Sequence[ir.Value | None], known: Mapping[ir.Value, Any], most: Extent | None
) -> Extent | None:
    """How often a ``Loop`` over ``body`` runs, of ``inputs``, where values are ``known`` and it runs ``most`` times.

    None where its condition is no conjunction of comparisons of counters with limits that are known before it begins,
    or where it is not known that it begins.
    """
    begins = inputs[1]
    if begins is not None and not _holds(begins, known):
        return None
    limits = _Counted(body, inputs, known).limits()
    return None if any(each is None for each in limits) else _least(*limits, most)


def most_trips(
    body: ir.Graph, inputs: Sequence[ir.Value | None], known: Mapping[ir.Value, Any], most: Extent | None
) -> Extent | None:
    """A number that a ``Loop`` over ``body`` runs no more often than, whatever else may end it; None for none."""
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
        """How often the loop runs by each part of its condition; None where a part is no comparison of a counter."""
        return [self.trips(each) for each in _conjunction(self.body.outputs[0], self.known)]

    def trips(self, condition: ir.Value | None) -> Extent | None:
        """How many trips there are at most where a trip ends with ``condition``."""
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
        """What ``value`` is in the first trip and how much more in each that follows."""
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
        """What ``value`` is in every trip."""
        value, more = sum_of(value, self.known)
        number = self._carried(value)
        if number is not None:
            if sum_of(self.body.outputs[number - 1], self.known) != (value, 0):
                return None
            value = self.inputs[number]
        found = _number(value, self.known)
        return None if found is None else found + more

    def _carried(self, value: ir.Value | None) -> int | None:
        """Which input of the loop ``value`` has in the first trip, where it is an input of the body."""
        return next((i for i, each in enumerate(self.body.inputs) if i > 1 and each is value), None)


def _conjunction(value: ir.Value | None, known: Mapping[ir.Value, Any]) -> list[ir.Value | None]:
    root, more = sum_of(value, known)  # exporters add 0 to what a trip hands on
    node = None if more else _created_by(root)
    if node is not None and node.op_type == "And":
        return [each for side in node.inputs for each in _conjunction(side, known)]
    return [value if more else root]


def _below(value: ir.Value | None) -> tuple[ir.Value | None, ir.Value | None] | None:
    """The sides of a ``Less``, the smaller first; None where ``value`` is no such."""
    node = _created_by(value)
    if node is None or node.op_type not in ("Less", "Greater"):
        return None
    left, right = node.inputs
    return (left, right) if node.op_type == "Less" else (right, left)


def _holds(value: ir.Value, known: Mapping[ir.Value, Any]) -> bool:
    """Whether it is known that the condition ``value`` is true before the loop begins."""
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
    """A value, and the number that nodes have added to it which made ``value``; itself and 0 where none has."""
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
    """The one number that ``value`` is, or that it was made of by a node that hands it on."""
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
