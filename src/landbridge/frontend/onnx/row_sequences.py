"""Sequences whose length a run decides: rows of one tensor, which a loop collected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from landbridge.errors import UnsupportedOperatorError
from landbridge.frontend.onnx.sequences import TensorSequence
from landbridge.operators import REGISTRY, Kernel
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.extent_arrays import extents_array
from landbridge.records import record


@record(frozen=True, eq=False)
class RowSequence:
    """A sequence of the tensors along the first axis of ``rows``, in order."""

    rows: Operand


def row_sequence_node(c: OpContext, inputs: Sequence[Any]) -> Operand | RowSequence:
    """Returns the result of a node that changes or reads a RowSequence.

    Raises UnsupportedOperatorError for an operator that rows do not support.
    """
    function = _OF_ROWS.get(c.op_type)
    if function is None or not isinstance(inputs[0], RowSequence):
        raise c.unsupported(
            "it is given a sequence that a loop made, of as many tensors as a run says; SequenceAt, SequenceLength, "
            "SequenceInsert behind all and ConcatFromSequence take such"
        )
    return function(c, *inputs)


def extended(c: OpContext, first: TensorSequence | RowSequence, rows: Operand) -> RowSequence:
    """Returns ``first`` with ``rows`` appended.

    Raises UnsupportedOperatorError if they have other shapes or dtypes.
    """
    before = [first.rows] if isinstance(first, RowSequence) else [_row(c, each) for each in first.elements]
    for each in before:
        if (c.shape(each)[1:], c.dtype(each)) != (c.shape(rows)[1:], c.dtype(rows)):
            raise UnsupportedOperatorError(
                f"{c.op_type} node {c.g.node!r}: a sequence has tensors {c.dtype(each)}{list(c.shape(each)[1:])} and "
                f"{c.dtype(rows)}{list(c.shape(rows)[1:])}; where a run says how many there are, one shape is legal"
            )
    parts = [each for each in (*before, rows) if c.shape(each)[0] != 0]
    return RowSequence(c.g.concat([c.value(each) for each in parts], 0) if len(parts) > 1 else [*parts, rows][0])


def _row(c: OpContext, tensor: Operand) -> Operand:
    return c.reshape(tensor, (1, *c.shape(tensor)))


def _element(c: OpContext, x: RowSequence, place: Operand) -> Operand:
    kernel = REGISTRY.find(Kernel, "", "Gather", 13)
    assert kernel is not None
    return cast(Operand, kernel.function(OpContext(c.g, "Gather", 13, {"axis": 0}), x.rows, place))


def _length(c: OpContext, x: RowSequence) -> Operand:
    return extents_array([c.shape(x.rows)[0]]).reshape(())


def _insert(c: OpContext, x: RowSequence, tensor: Operand, place: Operand | None = None) -> RowSequence:
    if place is not None:
        raise c.unsupported("it inserts at a position into a sequence that a loop made; behind all is legal: none")
    return extended(c, x, _row(c, tensor))


def _identity(c: OpContext, x: RowSequence) -> RowSequence:
    return x


def _concat(c: OpContext, x: RowSequence) -> Operand:
    count, *shape = c.shape(x.rows)
    is_new = bool(c.attribute("new_axis", 0))
    at = c.axis(int(c.attribute("axis")), len(shape) + is_new)
    along = c.transpose(x.rows, [*range(1, at + 1), 0, *range(at + 1, len(shape) + 1)])
    return along if is_new else c.reshape(along, [*shape[:at], count * shape[at], *shape[at + 1 :]])


_OF_ROWS: dict[str, Callable[..., Operand | RowSequence]] = {
    "SequenceAt": _element,
    "SequenceLength": _length,
    "SequenceInsert": _insert,
    "ConcatFromSequence": _concat,
    "Identity": _identity,
}
