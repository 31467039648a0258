"""Sequences of tensors during import: lists of known length; the graph contains only their elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from landbridge.errors import NodeError, ShapeError
from landbridge.operators import REGISTRY, Kernel
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.slicing import parts_along
from landbridge.records import record
from landbridge.sizes.size import Extent


@record(frozen=True, eq=False)
class TensorSequence:
    """A sequence of tensors, in order."""

    elements: tuple[Operand, ...] = ()


def sequence_node(c: OpContext, inputs: Sequence[Any]) -> Operand | TensorSequence:
    """Returns the result of a node that creates, changes or reads a sequence.

    Raises UnsupportedOperatorError if the index of an element is computed, and for an operator that takes no sequence;
    NodeError for an index out of range.
    """
    function = OF_SEQUENCES.get(c.op_type)
    if function is None:
        raise c.unsupported("it is given a sequence, and takes tensors")
    return function(c, *inputs)


def _at(c: OpContext, location: Operand | None, ends: int) -> int:
    """Returns ``location`` as a number; a negative one counts from ``ends``."""
    if location is None:
        return ends
    number = int(c.constant(location, "position").reshape(-1)[0])
    if not -ends <= number <= ends:
        raise NodeError(f"{c.op_type} node {c.g.node!r}: position {number} of a sequence of {ends} tensors")
    return number + ends if number < 0 else number


def _construct(c: OpContext, *inputs: Operand) -> TensorSequence:
    return TensorSequence(inputs)


def _empty(c: OpContext) -> TensorSequence:
    return TensorSequence()


def _insert(c: OpContext, x: TensorSequence, tensor: Operand, location: Operand | None = None) -> TensorSequence:
    at = _at(c, location, len(x.elements))
    return TensorSequence((*x.elements[:at], tensor, *x.elements[at:]))


def _erase(c: OpContext, x: TensorSequence, location: Operand | None = None) -> TensorSequence:
    at = _at(c, location, len(x.elements)) if location is not None else len(x.elements) - 1
    return TensorSequence((*x.elements[:at], *x.elements[at + 1 :]))


def _element(c: OpContext, x: TensorSequence, location: Operand) -> Operand:
    at = _at(c, location, len(x.elements))
    if at == len(x.elements):
        raise NodeError(f"{c.op_type} node {c.g.node!r}: position {at} of a sequence of {at} tensors")
    return x.elements[at]


def _length(c: OpContext, x: TensorSequence) -> Operand:
    return np.asarray(len(x.elements), np.int64)


def _identity(c: OpContext, x: TensorSequence) -> TensorSequence:
    return x


def _concat(c: OpContext, x: TensorSequence) -> Operand:
    if not x.elements:
        raise ShapeError(f"{c.op_type} node {c.g.node!r}: an empty sequence; one tensor at least is legal")
    axis, elements = int(c.attribute("axis")), list(x.elements)
    if c.attribute("new_axis", 0):
        rank = c.rank(elements[0]) + 1
        at = c.axis(axis, rank)
        elements = [c.reshape(e, (*c.shape(e)[:at], 1, *c.shape(e)[at:])) for e in elements]
    kernel = REGISTRY.find(Kernel, "", "Concat", 13)
    assert kernel is not None
    return cast(Operand, kernel.function(OpContext(c.g, "Concat", 13, {"axis": axis}), *elements))


def _split(c: OpContext, x: Operand, split: Operand | None = None) -> TensorSequence:
    shape = list(c.shape(x))
    axis = c.axis(int(c.attribute("axis", 0)), len(shape))
    parts = parts_along(c, x, axis, _sizes(c, shape[axis], axis, split))
    if split is None and not c.attribute("keepdims", 1):
        parts = [c.reshape(created, [*shape[:axis], *shape[axis + 1 :]]) for created in parts]
    return TensorSequence(tuple(parts))


def _sizes(c: OpContext, extent: Extent, axis: int, split: Operand | None) -> list[Extent]:
    """Returns how many of the ``extent`` elements of ``axis`` each part has."""
    if split is not None and c.rank(split):
        return cast(list[Extent], c.constant(split, "split").tolist())
    if not isinstance(extent, int):
        raise c.unsupported(
            f"axis {axis} is of {extent} elements; how many parts there are has to be known: fix the extent by shapes= "
            "or dims=, or give the size of each part"
        )
    size: Extent = 1 if split is None else c.constant(split, "split").reshape(-1).tolist()[0]
    if not isinstance(size, int):
        raise c.unsupported("the size of a part is computed; how many there are has to be known: give it by constants=")
    if size < 1:
        raise NodeError(f"{c.op_type} node {c.g.node!r}: parts of {size} elements; at least 1 is legal")
    return [min(size, extent - at) for at in range(0, extent, size)]


#: The implementation of each operator.
OF_SEQUENCES: dict[str, Callable[..., Operand | TensorSequence]] = {
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceAt": _element,
    "SequenceLength": _length,
    "ConcatFromSequence": _concat,
    "SplitToSequence": _split,
    "Identity": _identity,
}


def places(inputs: Sequence[Any]) -> dict[SSAValue, tuple[int, int]]:
    """Returns the least and the largest legal value of each input that is an index into the first input."""
    ends = len(inputs[0].elements) if inputs and isinstance(inputs[0], TensorSequence) else 0
    return {x: (-ends, ends - 1) for x in inputs[1:] if ends and isinstance(x, SSAValue)}
