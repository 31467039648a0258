"""Operators on a buffer with more capacity than content: its length in use, and appending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.ir import SSAValue

from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.extent_arrays import extents_array
from landbridge.ops.legal import axis_of
from landbridge.ops.rules import rules
from landbridge.ops.scatter_steps import scatter_by_steps
from landbridge.ops.slicing import part
from landbridge.sizes.size import Extent, agree, clamped, largest, smallest


@rules(
    "length: ...",
    "new: _ ...",
    "buffer: _ ...",
    "other: _ ...",
    "lasts?: _ ...",
    attributes={"axis": axis_of("len(buffer)", default=0)},
)
@kernel("landbridge", "LengthWithin")
@accuracy(EXACT)
def length_within(
    c: OpContext, length: Operand, new: Operand, buffer: Operand, other: Operand, lasts: Operand | None = None
) -> Operand:
    """Returns ``length`` [1], checked to be from 1 to the extent of ``buffer`` along ``axis``; a run with another is
    refused.

    ``buffer``, and ``other`` likewise, grow by the extent of ``new`` to this length. Where a device runs
    the kernels, it loads a length that runs decide, and clamps it; the host knows the capacity alone. The largest of
    ``lasts``, the numbers of the last elements in use after a run, then says how they grow. With the attribute
    ``reads_all``, the length is then the whole extent of ``buffer``.
    """
    axis = c.attribute("axis", 0)
    if isinstance(length, SSAValue) and _is_loaded(c):
        for each in (buffer, other):
            c.g.grows(each, axis, 1 - c.shape(new)[axis], 1, lasts)
        capacity = c.shape(buffer)[axis]
        return extents_array([capacity if c.attribute("reads_all", 0) else _loaded(c, length, capacity)])
    (requested,) = c.constant(length, "length").reshape(-1).tolist()
    for each in (buffer, other):
        c.g.grows(each, axis, requested - c.shape(new)[axis], requested)
    return extents_array([_within(c, requested, c.shape(buffer)[axis], 1)])


@rules("length: ...", "buffer: _ ...", attributes={"axis": axis_of("len(buffer)", default=0)})
@kernel("landbridge", "LongestFilled")
@accuracy(EXACT)
def longest_filled(c: OpContext, length: Operand, buffer: Operand) -> Operand:
    """Returns how many elements [1] of ``buffer`` along ``axis`` are read, of which ``length`` are filled.

    Where a device runs the kernels, it loads ``length``, a tensor of one element, and clamps it. Elsewhere it is the
    whole extent, and a mask leaves out the rest.
    """
    capacity = c.shape(buffer)[c.attribute("axis", 0)]
    is_loaded = isinstance(length, SSAValue) and _is_loaded(c)
    return extents_array([_loaded(c, length, capacity) if is_loaded else capacity])


def _is_loaded(c: OpContext) -> bool:
    """Returns whether a device runs kernels, which load lengths."""
    return not all(target.on_host for target in c.g.module.targets)


def _loaded(c: OpContext, length: Operand, capacity: Extent) -> Extent:
    """Returns the integer ``length`` as a dimension that kernels load; ``capacity`` where that is open.

    Raises UnsupportedOperatorError for a length of several elements.
    """
    if not agree(element_count(c.shape(length)), 1):
        raise c.unsupported(f"a length of shape {list(c.shape(length))}; legal: one integer")
    return c.g.length(c.value(length), capacity) if isinstance(capacity, int) else capacity


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
        clamped(requested, min(least, capacity), capacity)  # a buffer of no elements has no room for one
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
    (before,) = c.constant(length, "length").reshape(-1).tolist()

    def location(
        s: ScalarBuilder, _: BodyBuffer, at: Sequence[Value]
    ) -> tuple[Mapping[int, Value], Mapping[int, Value], Sequence[Value]]:
        by_axis = dict(zip((axis, *others), at, strict=True))
        number = at[0] + s.const(before, "index")
        return {axis: number}, {a: by_axis[a] for a in others}, [by_axis[a] for a in range(len(shape))]

    return scatter_by_steps(c, buffer, None, new, (shape[axis], *(shape[a] for a in others)), "", location)


@rules(
    "buffer: _ ...",
    "positions: _",
    "new: _ ...",
    "length?: ...",
    attributes={"axis": axis_of("len(buffer)", default=0)},
    where=("len(new) == len(buffer)",),
)
@kernel("landbridge", "WriteSteps")
@accuracy(EXACT)
def write_steps(
    c: OpContext, buffer: Operand, positions: Operand, new: Operand, length: Operand | None = None
) -> Operand:
    """Returns ``buffer`` with each step of ``new`` along ``axis`` written at its element of ``positions``.

    With ``length``, the positions continue the steps so far: it is their number, or, with the attribute
    ``has_each``, the position of each new step.
    """
    shape, axis = c.shape(new), c.attribute("axis", 0)
    if 0 in (*shape, *c.shape(buffer)):
        return buffer
    if isinstance(length, SSAValue):
        has_each = bool(c.attribute("has_each", 0))
        before, after = (1 - shape[axis], 1) if has_each else (0, shape[axis])
        c.g.grows(buffer, axis, before, after, length, has_each=has_each)
    elif length is not None and not c.attribute("has_each", 0):  # a size, as the positions are a Range from it
        (first,) = c.constant(length, "length").reshape(-1).tolist()
        c.g.grows(buffer, axis, first, first + shape[axis])
        _within(c, first + shape[axis], c.shape(buffer)[axis], 1)
    others = [a for a in range(len(shape)) if a != axis]
    (count,) = c.shape(positions)
    c.g.held("the number of positions of the new steps", count, shape[axis])

    def location(
        s: ScalarBuilder, indices: BodyBuffer, at: Sequence[Value]
    ) -> tuple[Mapping[int, Value], Mapping[int, Value], Sequence[Value]]:
        by_axis = dict(zip((axis, *others), at, strict=True))
        # a run checks that they are as many; what is read is proved without that
        step = at[0] if count == shape[axis] else s.minimum(at[0], largest(count - 1, 0))
        number = indices.load(s, [step])
        return {axis: number}, {a: by_axis[a] for a in others}, [by_axis[a] for a in range(len(shape))]

    return scatter_by_steps(c, buffer, positions, new, (shape[axis], *(shape[a] for a in others)), "", location)
