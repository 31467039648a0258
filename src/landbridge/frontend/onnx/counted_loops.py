"""Loops whose condition compares a counter with a limit, as those have that were a while loop: how often they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from landbridge.frontend.onnx.unfolded_size import constant_of
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
    loop = _Counted(body, inputs, known)
    found = [loop.trips(each) for each in _conjunction(body.outputs[0])]
    if most is not None:
        found.append(most)
    trips = [each for each in found if each is not None]
    return smallest(*trips) if trips and len(trips) == len(found) else None


@dataclass(frozen=True, eq=False)
class _Counted:
    body: ir.Graph
    inputs: Sequence[ir.Value | None]
    known: Mapping[ir.Value, Any]

    def trips(self, condition: ir.Value | None) -> Extent | None:
        """How many trips there are at most where a trip ends with ``condition``."""
        sides = _below(condition)
        if sides is None:
            return None
        left, limit = (_root(side) for side in sides)
        counter, more = self._counter(left)
        most = self._outside(limit)
        if counter is None or most is None:
            return None
        first, step = counter
        return largest(0, ceildiv(most - first - more, step)) + 1

    def _counter(self, value: ir.Value | None) -> tuple[tuple[Extent, int] | None, int]:
        """What ``value`` is in the first trip and how much more in each that follows, and what is added to that."""
        more = 0
        added = _added(value, self.known)
        if added is not None:
            value, more = added
        if value is self.body.inputs[0]:
            return (0, 1), more
        number = self._carried(value)
        if number is None:
            return None, 0
        step = _added(_root(self.body.outputs[number - 1]), self.known)
        first = _number(self.inputs[number], self.known)
        if step is None or step[0] is not value or step[1] < 1 or first is None:
            return None, 0
        return (first, step[1]), more

    def _outside(self, value: ir.Value | None) -> Extent | None:
        """What ``value`` is in every trip."""
        number = self._carried(value)
        if number is not None:
            if _root(self.body.outputs[number - 1]) is not value:
                return None
            value = self.inputs[number]
        return _number(value, self.known)

    def _carried(self, value: ir.Value | None) -> int | None:
        """Which input of the loop ``value`` has in the first trip, where it is an input of the body."""
        return next((i for i, each in enumerate(self.body.inputs) if i > 1 and each is value), None)


def _conjunction(value: ir.Value | None) -> list[ir.Value | None]:
    node = _made_by(value)
    if node is not None and node.op_type == "And":
        return [each for side in node.inputs for each in _conjunction(side)]
    if node is not None and node.op_type in _HANDED_ON:
        return _conjunction(node.inputs[0])
    return [value]


def _below(value: ir.Value | None) -> tuple[ir.Value | None, ir.Value | None] | None:
    """The sides of a ``Less``, the smaller first; None where ``value`` is no such."""
    node = _made_by(value)
    if node is None or node.op_type not in ("Less", "Greater"):
        return None
    left, right = node.inputs
    return (left, right) if node.op_type == "Less" else (right, left)


def _holds(value: ir.Value, known: Mapping[ir.Value, Any]) -> bool:
    """Whether it is known that the condition ``value`` is true before the loop begins."""
    found = known.get(value)
    if isinstance(found, np.ndarray):
        return bool(found.size == 1 and found.dtype == bool and found.reshape(-1)[0])
    for each in _conjunction(value):
        sides = _below(each)
        if sides is None:
            return False
        low, high = (_number(side, known) for side in sides)
        if low is None or high is None or not at_least(high, low + 1):
            return False
    return True


def _added(value: ir.Value | None, known: Mapping[ir.Value, Any]) -> tuple[ir.Value | None, int] | None:
    """A value and the number that ``Add`` adds to it; None where ``value`` is no such sum."""
    node = _made_by(value)
    if node is None or node.op_type != "Add":
        return None
    for one, other in (node.inputs, node.inputs[::-1]):
        number = _number(other, known)
        if isinstance(number, int):
            return _root(one), number
    return None


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


def _root(value: ir.Value | None) -> ir.Value | None:
    """What nodes that hand a number on have handed on."""
    while (before := _one_on(value)) is not None:
        value = before
    return value


def _one_on(value: ir.Value | None) -> ir.Value | None:
    node = _made_by(value)
    return node.inputs[0] if node is not None and node.op_type in _HANDED_ON else None


def _made_by(value: ir.Value | None) -> ir.Node | None:
    return None if value is None else value.producer()
