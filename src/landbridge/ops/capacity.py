"""Operators on a buffer with more capacity than content: its length in use, and appending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.extent_arrays import extents_array
from landbridge.ops.legal import axis_of
from landbridge.ops.rules import rules
from landbridge.ops.scatter_steps import scatter_by_steps
from landbridge.ops.slicing import part
from landbridge.sizes.size import Extent, clamped, smallest


@rules(
    "length: 1", "new: _ ...", "buffer: _ ...", "other: _ ...", attributes={"axis": axis_of("len(buffer)", default=0)}
)
@kernel("landbridge", "LengthWithin")
@accuracy(EXACT)
def length_within(c: OpContext, length: Operand, new: Operand, buffer: Operand, other: Operand) -> Operand:
    """Returns ``length`` [1], checked to be from 1 to the extent of ``buffer`` along ``axis``; a run with another is
    refused.

    ``buffer``, and ``other`` likewise, grow by the extent of ``new`` to this length.
    """
    axis = c.attribute("axis", 0)
    (requested,) = c.constant(length, "length").reshape(-1).tolist()
    for each in (buffer, other):
        c.g.grows(each, axis, requested - c.shape(new)[axis], requested)
    return extents_array([_within(c, requested, c.shape(buffer)[axis], 1)])


@rules("length: 1", "new: _ ...", "buffer: _ ...", attributes={"axis": axis_of("len(buffer)", default=0)})
@kernel("landbridge", "LengthAfter")
@accuracy(EXACT)
def length_after(c: OpContext, length: Operand, new: Operand, buffer: Operand) -> Operand:
    """Returns ``length`` [1] plus the extent of ``new`` along ``new_axis``, or ``axis`` where that is left out.

    A run where that exceeds the extent of ``buffer`` along ``axis`` is refused.
    """
    axis = c.attribute("axis", 0)
    (before,) = c.constant(length, "length").reshape(-1).tolist()
    after = before + c.shape(new)[c.attribute("new_axis", axis)]
    c.g.grows(buffer, axis, before, after)
    return extents_array([_within(c, after, c.shape(buffer)[axis], 1)])


@rules("buffer: _ ...", "total: 1", "new: _ ...", attributes={"axis": axis_of("len(buffer)", default=0)})
@kernel("landbridge", "ShapeBefore")
@accuracy(EXACT)
def shape_before(c: OpContext, buffer: Operand, total: Operand, new: Operand) -> Operand:
    """Returns the shape of what is in use of ``buffer`` before a run, from ``start`` to ``end`` as Shape has them.

    Along ``axis`` that is ``total`` [1] less the extent of ``new`` along ``new_axis``.
    """
    shape, axis = list(c.shape(buffer)), c.attribute("axis", 0)
    (after,) = c.constant(total, "total").reshape(-1).tolist()
    shape[axis] = after - c.shape(new)[c.attribute("new_axis", axis)]
    return extents_array(shape[c.attribute("start", 0) : c.attribute("end", len(shape))])


def _within(c: OpContext, requested: Extent, capacity: Extent, least: int) -> Extent:
    within = (
        clamped(requested, least, capacity)
        if isinstance(capacity, int)
        else smallest(clamped(requested, least), capacity)
    )
    return c.g.held("the steps so far with those of the run" if least else "the steps so far", requested, within)


@rules("buffer: _ ...", "length: 1", attributes={"axis": axis_of("len(buffer)", default=0)})
@kernel("landbridge", "InUse")
@accuracy(EXACT)
def in_use(c: OpContext, buffer: Operand, length: Operand) -> Operand:
    """Returns the first ``length`` [1] elements of ``buffer`` along ``axis``."""
    shape, axis = list(c.shape(buffer)), c.attribute("axis", 0)
    (requested,) = c.constant(length, "length").reshape(-1).tolist()
    shape[axis] = cast(int, _within(c, requested, shape[axis], 0))
    return part(c, buffer, [0] * len(shape), [1] * len(shape), shape)


@rules("buffer: _ ...", "new: _ ...", "length: 1", attributes={"axis": axis_of("len(buffer)", default=0)})
@kernel("landbridge", "Append")
@accuracy(EXACT)
def append(c: OpContext, buffer: Operand, new: Operand, length: Operand) -> Operand:
    """Returns ``buffer`` with ``new`` written along ``axis`` after the first ``length`` [1]."""
    shape, axis = c.shape(new), c.attribute("axis", 0)
    if 0 in (*shape, *c.shape(buffer)):
        return buffer
    others = [a for a in range(len(shape)) if a != axis]

    def location(
        s: ScalarBuilder, indices: BodyBuffer, at: Sequence[Value]
    ) -> tuple[Mapping[int, Value], Mapping[int, Value], Sequence[Value]]:
        by_axis = dict(zip((axis, *others), at, strict=True))
        number = s.cast(indices.load(s, [s.const(0, "index")]), "int64") + s.cast(at[0], "int64")
        return {axis: number}, {a: by_axis[a] for a in others}, [by_axis[a] for a in range(len(shape))]

    return scatter_by_steps(c, buffer, length, new, (shape[axis], *(shape[a] for a in others)), "", location)


@rules(
    "buffer: _ ...",
    "positions: _",
    "new: _ ...",
    attributes={"axis": axis_of("len(buffer)", default=0)},
    where=("len(new) == len(buffer)",),
)
@kernel("landbridge", "WriteSteps")
@accuracy(EXACT)
def write_steps(c: OpContext, buffer: Operand, positions: Operand, new: Operand) -> Operand:
    """Returns ``buffer`` with each step of ``new`` along ``axis`` written at its element of ``positions``.

    With the attribute ``appends``, the positions are those behind the steps so far.
    """
    shape, axis = c.shape(new), c.attribute("axis", 0)
    if 0 in (*shape, *c.shape(buffer)):
        return buffer
    if c.attribute("appends", 0):
        c.g.grows(buffer, axis, 1 - shape[axis], 1, positions)
    others = [a for a in range(len(shape)) if a != axis]

    def location(
        s: ScalarBuilder, indices: BodyBuffer, at: Sequence[Value]
    ) -> tuple[Mapping[int, Value], Mapping[int, Value], Sequence[Value]]:
        by_axis = dict(zip((axis, *others), at, strict=True))
        number = indices.load(s, [at[0]])
        return {axis: number}, {a: by_axis[a] for a in others}, [by_axis[a] for a in range(len(shape))]

    return scatter_by_steps(c, buffer, positions, new, (shape[axis], *(shape[a] for a in others)), "", location)
