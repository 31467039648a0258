"""Carried values of a Loop to which iterations only append: what they append is collected as rows, so that no value
grows.
"""

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
    """A carried value, with ``first`` as its value before the first iteration, to which iterations append along
    ``axis``.
    """

    first: Operand
    axis: int

    def nothing(self, c: OpContext) -> Array:
        """Returns an array like the value, with 0 elements along the axis.

        An iteration that appends to it returns only the new part.
        """
        shape = [0 if axis == self.axis else extent for axis, extent in enumerate(c.shape(self.first))]
        return np.zeros(shape, numpy_dtype(c.dtype(self.first)))

    def of_rows(self, c: OpContext, rows: SSAValue) -> Operand:
        """Returns the final value; ``rows`` are the appended parts, stacked along a first axis of iterations.

        Raises UnsupportedOperatorError if the other axes differ from those of the first value.
        """
        (trips, *shape), owned, at = c.shape(rows), list(c.shape(self.first)), self.axis
        if shape[:at] != owned[:at] or shape[at + 1 :] != owned[at + 1 :] or c.dtype(rows) != c.dtype(self.first):
            raise UnsupportedOperatorError(
                f"an iteration appends shape {tuple(shape)} to {tuple(owned)}; all other extents must be equal"
            )
        along = c.transpose(rows, [*range(1, at + 1), 0, *range(at + 1, len(owned) + 1)])
        joined = c.reshape(along, [*shape[:at], trips * shape[at], *shape[at + 1 :]])
        parts = [x for x in (self.first, joined) if c.shape(x)[at] != 0]
        return parts[0] if len(parts) == 1 else c.g.concat([c.value(x) for x in parts], at)


def appended(c: OpContext, body: ir.Graph, state: Sequence[Any]) -> dict[int, Appended]:
    """Returns the values of ``state``, the carried values of a Loop, to which ``body`` only appends; by their index in
    ``state``.
    """
    found = {}
    for number, (formal, value) in enumerate(zip(body.inputs[2:], state, strict=True)):
        axis = _appended_along(body, formal, body.outputs[1 + number])
        if axis is not None and is_known(value) and -c.rank(value) <= axis < c.rank(value):
            found[number] = Appended(value, axis % c.rank(value))
    return found


def begins_with(output: ir.Value, formal: ir.Value) -> int | None:
    """Returns the axis of the Concat that makes ``output`` with ``formal`` as its first input, as the file gives it: it
    may be negative.

    Returns None if ``output`` is not made in that way.
    """
    node = output.producer()
    if node is None or (node.domain, node.op_type) != ("", "Concat") or "axis" not in node.attributes:
        return None
    return node.attributes["axis"].as_int() if node.inputs[0] is formal else None


def _appended_along(body: ir.Graph, formal: ir.Value, output: ir.Value) -> int | None:
    """Returns the axis of the only node that reads ``formal``: a Concat with ``formal`` first, whose result is the
    carried value ``output`` and is used for nothing else.

    Returns None if there is no such node. The axis may be negative.
    """
    uses = list(formal.uses())
    if len(uses) != 1 or uses[0].idx != 0 or formal in body.outputs:
        return None
    node = uses[0].node
    if (node.domain, node.op_type) != ("", "Concat") or "axis" not in node.attributes or node.graph is not body:
        return None
    if node.outputs[0] is not output or list(output.uses()) or list(body.outputs).count(output) != 1:
        return None
    return node.attributes["axis"].as_int()
