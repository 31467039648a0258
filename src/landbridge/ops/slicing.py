"""Parts of tensors, and tensors of parts: Slice, Split, Concat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from landbridge.errors import ShapeError
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.size_exprs import extent_expr
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import any_integer, at_least, axis_of, distinct_axes, holds
from landbridge.ops.rules import rules
from landbridge.sizes.size import (
    Extent,
    Size,
    agree,
    as_one,
    ceildiv,
    dimensions_of,
    largest,
    must_agree,
    smallest,
    undecided,
)
from landbridge.sizes.size import at_least as never_below
from landbridge.sizes.terms import AboveZero, Clamped, atoms


def part(c: OpContext, x: Operand, start: Sequence[int], step: Sequence[int], shape: Sequence[int]) -> Operand:
    """Returns the elements at ``start + i * step`` for i within ``shape``; a view when they are contiguous."""
    if isinstance(x, np.ndarray) and not any(isinstance(e, Size) for e in (*start, *shape)):
        index = np.ix_(*(a + s * np.arange(e) for a, s, e in zip(start, step, shape, strict=True)))
        return np.ascontiguousarray(x[index]) if shape else x
    old = c.shape(x)
    cut = [a for a, e in enumerate(shape) if e != old[a] or (step[a] != 1 and e > 1)]
    if not cut:
        return x
    first = cut[-1]
    contiguous = all(e == 1 for e in shape[:first]) and (step[first] == 1 or shape[first] == 1)
    if contiguous and not isinstance(x, np.ndarray):
        strides = [element_count(old[a + 1 :]) for a in range(len(old))]
        return c.g.reshape(x, shape, sum(a * s for a, s in zip(start, strides, strict=True)))
    return c.gather(
        "slice",
        x,
        shape,
        lambda *d: [_at(d[a], start[a], step[a], shape[a]) for a in range(len(old))],
        (tuple(start), tuple(step)),
    )


def _at(index: Any, start: Extent, step: int, extent: Extent) -> Any:
    if extent == 1:
        return start
    return index * step + extent_expr(start) if start != 0 else index * step if step != 1 else index


def index_within(s: ScalarBuilder, v: Value, extent: Extent) -> Value:
    """Returns a number as a loop index clamped to ``extent``, whatever value the memory holds."""
    return s.cast(s.minimum(s.maximum(s.cast(v, "int64"), 0), largest(extent - 1, 0)), "index")


def _range(start: Extent, end: Extent, step: int, extent: Extent) -> tuple[Extent, int, Extent]:
    """Returns first index, step and length of Python's slice of an axis, except that a start before the first element
    means the first one for negative steps too.
    """
    start, end = (_from_front(v, extent) for v in (start, end))
    if extent == 0:
        return 0, step, 0
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    start, end = smallest(largest(start, 0), high), smallest(largest(end, low), high)
    return start, step, largest(ceildiv(end - start, step) if step > 0 else ceildiv(start - end, -step), 0)


def _from_front(at: Extent, extent: Extent) -> Extent:
    """Returns ``at`` from the front; it counts from the end where it is below 0."""
    if isinstance(at, int):
        return at + extent if at < 0 else at
    return at + extent * (-(at // (1 << 64)))  # of 64 bits, it is -1 or 0


@rules(
    "data: *S",
    "starts?: R",
    "ends?: R",
    "axes?: R",
    "steps?: R",
    attributes={
        "starts": any_integer(),
        "ends": any_integer(),
        "axes": axis_of("len(S)"),
        "steps": holds("0 not in it", "other than 0"),
    },
    where=(
        "len(starts) == len(ends)",
        "len(starts) <= len(S)",
        "len(axes) == len(starts)",
        distinct_axes("len(S)"),
        "len(steps) == len(starts)",
    ),
)
@kernel("", "Slice")
@accuracy(EXACT)
def slice_value(
    c: OpContext,
    x: Operand,
    starts: Operand | None = None,
    ends: Operand | None = None,
    axes: Operand | None = None,
    steps: Operand | None = None,
) -> Operand:
    """Slices along ``axes``; they are attributes before opset 10, inputs since."""
    shape = c.shape(x)
    begins, last = c.ints("starts", starts) or [], c.ints("ends", ends) or []
    along = c.ints("axes", axes) or list(range(len(begins)))
    steps_by = c.ints("steps", steps) or [1] * len(begins)
    ranges: list[tuple[Extent, int, Extent]] = [(0, 1, e) for e in shape]
    for a, b, axis, s in zip(begins, last, along, steps_by, strict=True):
        axis = c.axis(axis, len(shape))
        s = _step(c, s)
        if not s:
            raise ShapeError(f"{c.g.node}: Slice with step 0 along axis {axis}")
        ranges[axis] = _read_range(c, *_range(a, b, s, shape[axis]), shape[axis])
    first, by_axis, result = zip(*ranges, strict=True) if ranges else ((), (), ())
    is_bounded = any(isinstance(a, Size) for a in begins) and any(map(_is_bounded, first))
    for extent in result:
        least = c.fewest(extent)
        if is_bounded and never_below(extent, least) is None and not c.g.is_read(extent):
            raise undecided(f"{c.g.node}: {extent} >= {least}", extent, least, needed=True)
    if is_bounded or c.g.is_read(*first, *by_axis, *result):
        return _read_part(c, x, first, by_axis, result)
    return part(c, x, first, by_axis, result)


def _step(c: OpContext, step: Extent) -> int:
    """Returns ``step`` as a number: there is a program for each direction of one that an input gives; one that data
    decide is at least 1.
    """
    if isinstance(step, Size) and c.g.is_read(step) and c.g.data.names.isdisjoint(dimensions_of([step])):
        is_forward = never_below(step, 1)
        if is_forward is None:
            raise undecided(f"{c.g.node}: a step is {step} >= 1", step, 1)
        if not is_forward:
            return -cast(int, c.within("a step backwards", -step, 1))
    return cast(int, c.within("a step", step, 1))


def _is_bounded(start: Extent) -> bool:
    """Returns whether a run decides if ``start`` is that of the model or an end of the axis: no linear form then proves
    that reads are in bounds, so that each index is clamped.
    """
    return isinstance(start, Size) and any(isinstance(atom, AboveZero | Clamped) for atom in atoms(start.terms))


def _read_range(c: OpContext, start: Extent, step: Extent, count: Extent, extent: Extent) -> tuple[Extent, int, Extent]:
    """Returns a range within ``extent``; a run that reads another, or an empty one, is refused."""
    count = c.within("the number of elements", count, c.fewest(count), extent)
    if c.g.is_read(count):
        count = as_one(count, c.fewest(count), extent.high if isinstance(extent, Size) else extent)
    return c.limited(start, 0, extent - 1), cast(int, step), count


def _read_part(c: OpContext, x: Operand, start: Sequence[int], step: Sequence[int], shape: Sequence[int]) -> Operand:
    """Returns ``part`` with a start, step or extent that a run reads; an index that may be out of bounds is clamped."""
    old = c.shape(x)
    is_within = [_is_within(*each) for each in zip(start, step, shape, old, strict=True)]
    if all(is_within):
        return part(c, x, start, step, shape)

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        places = zip(is_within, at, start, step, old, strict=True)
        where = [
            i * by + a if inside else index_within(s, s.cast(i, "int64") * s.const(by, "int64") + a, e)
            for inside, i, a, by, e in places
        ]
        return buffers[0].load(s, where)

    return c.compute("slice", [x], shape, body, c.dtype(x))


def _is_within(start: Extent, step: Extent, count: Extent, extent: Extent) -> bool:
    """Returns whether each of ``count`` indices from ``start`` on, a number ``step`` apart, is known to be below
    ``extent``."""
    if isinstance(start, Size) or isinstance(step, Size) or start < 0 or not never_below(extent, start + 1):
        return False
    last = start + (count - 1) * step
    return bool(never_below(extent, last + 1) if step > 0 else never_below(last, 0))


@rules(
    "input: *S",
    "split?: _",
    attributes={"axis": axis_of("len(S)", default=0), "split": at_least(0), "num_outputs": at_least(1)},
    where=("len(S) >= 1",),
)
@kernel("", "Split")
@accuracy(EXACT)
def split(c: OpContext, x: Operand, sizes: Operand | None = None) -> Sequence[Operand]:
    """Splits along ``axis`` into consecutive parts of given sizes, or as equal as ``num_outputs`` allows."""
    shape = list(c.shape(x))
    axis = c.axis(c.attribute("axis", 0), len(shape))
    if sizes is not None and isinstance(c.shape(sizes)[0], Size):
        must_agree(f"{c.g.node}: the elements of split", c.shape(sizes)[0], c.outputs)
    extents = c.ints("split", sizes)
    if extents is None:
        count = c.attribute("num_outputs", c.outputs)
        chunk = ceildiv(shape[axis], max(count, 1))
        extents = cast(list[int], [smallest(chunk, shape[axis] - i * chunk) for i in range(count)])
    if len(extents) < c.outputs:
        raise ShapeError(f"{c.g.node}: Split of axis {axis} into {extents} for {c.outputs} outputs")
    return parts_along(c, x, axis, extents)


def parts_along(c: OpContext, x: Operand, axis: int, extents: Sequence[Extent]) -> list[Operand]:
    """Splits all of ``x`` into consecutive parts of ``extents`` along ``axis``; a run tests extents that it reads.
    Raises ShapeError where they are not.
    """
    shape = list(c.shape(x))
    is_read = c.g.is_read(*extents)
    if is_read:
        extents = _shares(c, extents, shape[axis])
    elif not agree(sum(extents), shape[axis]) or any(e < 0 for e in extents):
        raise ShapeError(f"{c.g.node}: parts of {list(extents)} of {shape[axis]} elements of axis {axis}")
    parts: list[Operand] = []
    at: Extent = 0
    for extent in extents:
        start = cast(list[int], [at if a == axis else 0 for a in range(len(shape))])
        wanted = cast(list[int], [extent if a == axis else e for a, e in enumerate(shape)])
        parts.append((_read_part if is_read else part)(c, x, start, [1] * len(shape), wanted))
        at = at + extent
    return parts


def _shares(c: OpContext, extents: Sequence[Extent], whole: Extent) -> list[int]:
    """Returns ``extents``, some of which a run reads, as numbers; the last is the rest of ``whole``."""
    shares = [c.within(f"the size of part {i}", e, c.fewest(e), whole) for i, e in enumerate(extents)]
    *others, _ = extents
    c.g.held("the size of the last part", extents[-1], whole - sum(others))
    return cast(list[int], shares)


@rules("*inputs: _ ...", attributes={"axis": axis_of("len(inputs)", default=1)})
@kernel("", "Concat")
@accuracy(EXACT)
def concat(c: OpContext, *operands: Operand) -> Operand:
    """Concatenates the operands along ``axis``; empty ones are ignored."""
    rank = c.rank(operands[0])
    axis = c.axis(c.attribute("axis", 1), rank)
    for x in operands[1:]:
        other, first = list(c.shape(x)), list(c.shape(operands[0]))
        fits = len(other) == rank
        if not fits or not all(a == axis or must_agree(c.g.node, other[a], first[a]) for a in range(rank)):
            raise ShapeError(
                f"{c.g.node}: Concat along axis {axis} of {', '.join(str(c.shape(v)) for v in operands)}; "
                "the other extents must be equal"
            )
    full = [x for x in operands if c.shape(x)[axis] != 0] or [operands[0]]
    return full[0] if len(full) == 1 else c.g.concat([c.value(x) for x in full], axis)
