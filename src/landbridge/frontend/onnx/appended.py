"""What a Loop carries and its trips only append to: it is collected as rows are, and nothing grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.errors import UnsupportedOperatorError
from landbridge.frontend.onnx.values import is_known
from landbridge.ops.context import Array, OpContext, Operand
from landbridge.records import record


@record(frozen=True, eq=False)
class Appended:
    """A value that is carried, ``first`` before the first trip, and that trips append to along ``axis``."""

    first: Operand
    axis: int

    def nothing(self, c: OpContext) -> Array:
        """A value of its shape without elements along the axis: what a trip appends to it is what the trip appends."""
        shape = [0 if axis == self.axis else extent for axis, extent in enumerate(c.shape(self.first))]
        return np.zeros(shape, numpy_dtype(c.dtype(self.first)))

    def of_rows(self, c: OpContext, rows: SSAValue) -> Operand:
        """What is carried last, where ``rows`` are what the trips append, along a first axis of trips.

        Raises UnsupportedOperatorError where that has other axes than what it is appended to.
        """
        (trips, *shape), owned, at = c.shape(rows), list(c.shape(self.first)), self.axis
        if shape[:at] != owned[:at] or shape[at + 1 :] != owned[at + 1 :] or c.dtype(rows) != c.dtype(self.first):
            raise UnsupportedOperatorError(f"a trip appends {tuple(shape)} to {tuple(owned)}")
        along = c.transpose(rows, [*range(1, at + 1), 0, *range(at + 1, len(owned) + 1)])
        joined = c.reshape(along, [*shape[:at], trips * shape[at], *shape[at + 1 :]])
        parts = [x for x in (self.first, joined) if c.shape(x)[at] != 0]
        return parts[0] if len(parts) == 1 else c.g.concat([c.value(x) for x in parts], at)


def appended(c: OpContext, body: ir.Graph, state: Sequence[Any]) -> dict[int, Appended]:
    """Those of ``state`` that the body of a Loop does nothing with but appending to them, by their numbers."""
    found = {}
    for number, (formal, value) in enumerate(zip(body.inputs[2:], state, strict=True)):
        axis = _appended_along(body, formal, body.outputs[1 + number])
        if axis is not None and is_known(value) and -c.rank(value) <= axis < c.rank(value):
            found[number] = Appended(value, axis % c.rank(value))
    return found


def begins_with(output: ir.Value, formal: ir.Value) -> int | None:
    """The axis along which ``output`` is ``formal`` and more behind it; None where it is not."""
    node = output.producer()
    if node is None or (node.domain, node.op_type) != ("", "Concat") or "axis" not in node.attributes:
        return None
    return node.attributes["axis"].as_int() if node.inputs[0] is formal else None


def _appended_along(body: ir.Graph, formal: ir.Value, output: ir.Value) -> int | None:
    """The axis of the one Concat that takes ``formal``, and takes it first, where nothing but the next trip takes what
    it gives; None where there is no such Concat."""
    uses = list(formal.uses())
    if len(uses) != 1 or uses[0].idx != 0 or formal in body.outputs:
        return None
    node = uses[0].node
    if (node.domain, node.op_type) != ("", "Concat") or "axis" not in node.attributes or node.graph is not body:
        return None
    if node.outputs[0] is not output or list(output.uses()) or list(body.outputs).count(output) != 1:
        return None
    return node.attributes["axis"].as_int()
