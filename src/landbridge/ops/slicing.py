"""Parts of tensors, and tensors of parts: Slice, Split, Concat, Pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.errors import ShapeError
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.size_exprs import extent_expr
from landbridge.ir.types import element_count
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import at_least, axis_of, distinct_axes, holds, one_of
from landbridge.ops.registry import operator
from landbridge.ops.rules import rules
from landbridge.sizes.size import Extent, agree, ceildiv, largest, smallest


def part(c: OpContext, x: Operand, start: Sequence[int], step: Sequence[int], shape: Sequence[int]) -> Operand:
    """The elements at ``start + i * step`` for i within ``shape``; a view when they are contiguous."""
    if isinstance(x, np.ndarray):
        index = np.ix_(*(a + s * np.arange(e) for a, s, e in zip(start, step, shape, strict=True)))
        return np.ascontiguousarray(x[index]) if shape else x
    old = c.shape(x)
    cut = [a for a, e in enumerate(shape) if e != old[a] or (step[a] != 1 and e > 1)]
    if not cut:
        return x
    first = cut[-1]
    contiguous = all(e == 1 for e in shape[:first]) and (step[first] == 1 or shape[first] == 1)
    if contiguous:
        strides = [element_count(old[a + 1 :]) for a in range(len(old))]
        return c.g.reshape(x, shape, sum(a * s for a, s in zip(start, strides, strict=True)))
    return c.gather("slice", x, shape, lambda *d: [_at(d[a], start[a], step[a], shape[a]) for a in range(len(old))])


def _at(index: Any, start: Extent, step: int, extent: Extent) -> Any:
    if extent == 1:
        return start
    return index * step + extent_expr(start) if start != 0 else index * step if step != 1 else index


def index_within(s: ScalarBuilder, v: Value, extent: int) -> Value:
    """A number as a loop index that stays inside ``extent``, whatever the memory holds that it comes from."""
    return s.cast(s.minimum(s.maximum(s.cast(v, "int64"), 0), largest(extent - 1, 0)), "index")


def _range(start: Extent, end: Extent, step: int, extent: Extent) -> tuple[Extent, int, Extent]:
    """First index, step and number of elements of Python's slice of an axis, but that a start before the first element
    is the first one for negative steps too."""
    start, end = (v + extent if v < 0 else v for v in (start, end))
    if not extent:
        return 0, step, 0
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    start, end = smallest(largest(start, 0), high), smallest(largest(end, low), high)
    return start, step, largest(ceildiv(end - start, step) if step > 0 else ceildiv(start - end, -step), 0)


@rules(
    "data: *S",
    "starts?: R",
    "ends?: R",
    "axes?: R",
    "steps?: R",
    attributes={
        "starts": holds("True"),
        "ends": holds("True"),
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
@operator("Slice")
@accuracy(EXACT)
def slice_value(
    c: OpContext,
    x: Operand,
    starts: Operand | None = None,
    ends: Operand | None = None,
    axes: Operand | None = None,
    steps: Operand | None = None,
) -> Operand:
    """Slices along ``axes``; attributes before opset 10, inputs since."""
    shape = c.shape(x)
    first, last = c.ints("starts", starts) or [], c.ints("ends", ends) or []
    along = c.ints("axes", axes) or list(range(len(first)))
    by = c.ints("steps", steps) or [1] * len(first)
    ranges: list[tuple[Extent, int, Extent]] = [(0, 1, e) for e in shape]
    for a, b, axis, s in zip(first, last, along, by, strict=True):
        axis = c.axis(axis, len(shape))
        if not s:
            raise ShapeError(f"{c.g.node}: Slice with step 0 along axis {axis}")
        ranges[axis] = _range(a, b, s, shape[axis])
    begin, by_axis, result = zip(*ranges, strict=True) if ranges else ((), (), ())
    return part(c, x, begin, by_axis, result)


@rules(
    "input: *S",
    "split?: _",
    attributes={"axis": axis_of("len(S)", default=0), "split": at_least(0), "num_outputs": at_least(1)},
    where=("sum(split) == S[axis]",),
)
@operator("Split")
@accuracy(EXACT)
def split(c: OpContext, x: Operand, sizes: Operand | None = None) -> Sequence[Operand]:
    """Consecutive parts along ``axis``: of given sizes, or as equal as ``num_outputs`` allows."""
    shape = list(c.shape(x))
    axis = c.axis(c.attribute("axis", 0), len(shape))
    extents = c.ints("split", sizes)
    if extents is None:
        count = c.attribute("num_outputs", c.outputs)
        chunk = ceildiv(shape[axis], max(count, 1))
        extents = cast(list[int], [smallest(chunk, shape[axis] - i * chunk) for i in range(count)])
    if not agree(sum(extents), shape[axis]) or any(e < 0 for e in extents) or len(extents) < c.outputs:
        raise ShapeError(
            f"{c.g.node}: Split of {shape[axis]} elements of axis {axis} into {extents} for {c.outputs} outputs"
        )
    parts, at = [], 0
    for extent in extents:
        start = [at if a == axis else 0 for a in range(len(shape))]
        wanted = [extent if a == axis else e for a, e in enumerate(shape)]
        parts.append(part(c, x, start, [1] * len(shape), wanted))
        at += extent
    return parts


@rules("*inputs: _ ...", attributes={"axis": axis_of("len(inputs)", default=1)})
@operator("Concat")
@accuracy(EXACT)
def concat(c: OpContext, *operands: Operand) -> Operand:
    """The operands one after another along ``axis``; empty ones count for nothing."""
    rank = c.rank(operands[0])
    axis = c.axis(c.attribute("axis", 1), rank)
    for x in operands[1:]:
        other, first = list(c.shape(x)), list(c.shape(operands[0]))
        if len(other) != rank or other[:axis] + other[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise ShapeError(
                f"{c.g.node}: Concat along axis {axis} of {', '.join(str(c.shape(v)) for v in operands)}; "
                "the other extents must be equal"
            )
    full = [x for x in operands if c.shape(x)[axis]] or [operands[0]]
    return full[0] if len(full) == 1 else c.g.concat([c.value(x) for x in full], axis)


@rules(
    "data: *S",
    "pads?: _",
    "constant_value?: () | 1 | 0",
    "axes?: _",
    attributes={
        "pads": at_least(-(1 << 40), below=1 << 40),
        "axes": axis_of("len(S)"),
        "mode": one_of("constant", "edge", "reflect", "wrap", default="constant"),
    },
    where=(distinct_axes("len(S)"),),
)
@operator("Pad")
@accuracy(EXACT)
def pad(
    c: OpContext,
    x: Operand,
    pads: Operand | None = None,
    value: Operand | None = None,
    axes: Operand | None = None,
) -> Operand:
    """Elements before and after each axis (negative: cut off): constant, edge, reflect or wrap."""
    shape, dtype = c.shape(x), c.dtype(x)
    rank = len(shape)
    amounts = c.ints("pads", pads) or []
    along = [c.axis(a, rank) for a in c.ints("axes", axes) or range(rank)]
    if len(amounts) != 2 * len(along):
        raise ShapeError(f"{c.g.node}: Pad has {len(amounts)} pads for {len(along)} axes; two for each are legal")
    low, high = [0] * rank, [0] * rank
    for i, a in enumerate(along):
        low[a], high[a] = amounts[i], amounts[len(along) + i]
    result = [e + a + b for e, a, b in zip(shape, low, high, strict=True)]
    if any(e < 0 for e in result):
        raise ShapeError(f"{c.g.node}: Pad of {shape} by {low} and {high} leaves a negative extent")
    if not any(low) and not any(high):
        return x
    mode = c.attribute("mode", "constant")
    if mode != "constant" and any(not e and r for e, r in zip(shape, result, strict=True)):
        raise ShapeError(f"{c.g.node}: Pad with mode {mode!r} of {shape}; an axis without elements has none to repeat")
    given = c.attribute("value", 0.0) if value is None or c.shape(value) == (0,) else value
    fill = None if isinstance(given, SSAValue) else np.asarray(given, numpy_dtype(dtype)).reshape(-1)[0].item()
    if mode == "constant" and fill is not None and min(low + high) >= 0:
        return _constant_pad(c, x, low, high, fill)
    if 0 in shape and 0 not in result:
        if mode != "constant":
            raise ShapeError(
                f"{c.g.node}: Pad of {shape} to {tuple(result)} by {mode}: an empty tensor has no element to repeat; "
                "only mode 'constant' gives it some"
            )
        return c.gather("pad", c.reshape(given, ()), result, lambda *d: [])
    padded = [a for a in range(rank) if low[a] or high[a]]
    operands: list[Operand] = [x, *(_source_index(c, mode, shape[a], low[a], high[a]) for a in padded)]
    if fill is None:
        operands.append(c.reshape(given, ()))

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        where, outside = list(at), s.const(False, "bool")
        for table, a in zip(buffers[1:], padded, strict=False):
            index = table.load(s, [at[a]])
            outside = outside | (index < 0)
            where[a] = index_within(s, index, shape[a])
        loaded = buffers[0].load(s, where)
        if mode != "constant":
            return loaded
        return s.select(outside, buffers[-1].load(s, []) if fill is None else s.const(fill, dtype), loaded)

    return c.compute("pad", operands, result, body, dtype)


def _constant_pad(c: OpContext, x: Operand, low: Sequence[int], high: Sequence[int], fill: float | int) -> Operand:
    """Padding with one known value, as a stage that lowering can fold into its reader."""
    shape, dtype = c.shape(x), c.dtype(x)
    result = [e + a + b for e, a, b in zip(shape, low, high, strict=True)]
    if 0 in shape:
        return np.full(result, fill, numpy_dtype(dtype))

    def build(p: PrimBuilder) -> None:
        padded = p.pad(p.inputs[0], low, high, fill)
        p.generic("p" * len(result), result, [(padded, lambda *d: d)], [(p.outputs[0], lambda *d: d)], lambda s, v: v)

    return c.g.call("pad", [c.value(x)], [(result, dtype)], build)[0]


def _source_index(c: OpContext, mode: str, extent: int, low: int, high: int) -> np.ndarray[Any, Any]:
    """Where each padded element comes from; -1 is outside."""
    at = np.arange(extent + low + high) - low
    if mode == "constant":
        at = np.where((at < 0) | (at >= extent), -1, at)
    elif mode == "edge":
        at = np.clip(at, 0, extent - 1)
    elif mode == "reflect":
        period = max(2 * (extent - 1), 1)
        at = np.abs((at + extent - 1) % period - (extent - 1)) if extent > 1 else np.zeros_like(at)
    elif mode == "wrap":
        first, rest = max(-low, 0), extent - max(-low, 0) - max(-high, 0)  # what negative padding leaves
        at = first + (at - first) % max(rest, 1)
    else:
        raise c.unsupported(f"mode {mode!r}; constant, edge, reflect and wrap are known")
    return at.astype(np.int64)
