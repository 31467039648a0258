"""Operators whose result depends on where an element is: masks, one-hot, running sums, order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import dtype_name, numpy_dtype
from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.size_exprs import extent_expr
from landbridge.ir.types import LARGEST_CONSTANT, check_size
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, ROUNDED, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.gather import as_index
from landbridge.ops.legal import any_integer, at_least, axis_of, holds, one_of
from landbridge.ops.rules import Index, rules
from landbridge.sizes.size import Extent, Size, ceildiv, largest, smallest


@rules("input: ... R C", "k?: () | 1", attributes={"k": any_integer()})
@kernel("", "Trilu")
@accuracy(EXACT)
def trilu(c: OpContext, x: Operand, k: Operand | None = None) -> Operand:
    """Computes the triangle on one side of diagonal ``k``; 0 elsewhere."""
    upper = bool(c.attribute("upper", 1))
    *_, rows, columns = c.shape(x)
    given = 0 if k is None else (c.ints("k", k) or [0])[0]
    diagonal = smallest(largest(given, -rows), columns)  # farther diagonals are the same

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        row, column = at[-2] + diagonal, at[-1]
        retained = column >= row if upper else column <= row
        return s.select(retained, buffers[0].load(s, at), 0)

    return c.compute("trilu", [x], c.shape(x), body, c.dtype(x))


@rules("input: R C")
@kernel("", "EyeLike")
@accuracy(EXACT)
def eye_like(c: OpContext, x: Operand) -> Operand:
    """Computes ones on diagonal ``k``, zeros elsewhere."""
    rows, columns = c.shape(x)
    dtype = c.attribute("dtype") or c.dtype(x)
    if isinstance(rows, Size) or isinstance(columns, Size):
        diagonal = c.attribute("k", 0)

        def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
            return s.select((at[0] + diagonal).eq(at[1]), s.const(1, dtype), 0)

        return c.compute("eye_like", [x], (rows, columns), body, dtype)
    check_size((rows, columns), dtype, LARGEST_CONSTANT)
    return np.eye(rows, columns, min(max(c.attribute("k", 0), -rows), columns), numpy_dtype(dtype))


@rules("input: _", attributes={"input": at_least(0), "value": holds("it.size == 1", "a tensor of one element")})
@kernel("", "ConstantOfShape")
@accuracy(EXACT)
def constant_of_shape(c: OpContext, shape: Operand) -> Operand:
    """Computes a tensor of one value."""
    value = c.attribute("value")
    fill = np.zeros(1, np.float32) if value is None else np.asarray(value)
    extents = c.ints("shape", shape) or ()
    if any(isinstance(extent, Size) for extent in extents):
        dtype, number = dtype_name(fill.dtype), fill.reshape(-1).tolist()[0]
        return c.compute("constant_of_shape", [], extents, lambda s, *_: s.const(number, dtype), dtype)
    check_size(extents, dtype_name(fill.dtype), LARGEST_CONSTANT)
    return np.full(extents, fill.reshape(-1)[0], fill.dtype)


@rules(
    "start: () | 1",
    "limit: () | 1",
    "delta: () | 1",
    attributes={
        "start": holds("it - it == 0"),
        "limit": holds("it - it == 0"),
        "delta": holds("it - it == 0 and it != 0"),
    },
)
@kernel("", "Range")
@accuracy(ROUNDED)
def range_values(c: OpContext, start: Operand, limit: Operand, delta: Operand) -> Operand:
    """Computes ``start``, ``start + delta``, ... before ``limit``."""
    whole = [c.whole(v) for v in (start, limit, delta)]
    ints = [each[0] for each in whole if each is not None]
    if len(ints) == 3 and any(isinstance(each, Size) for each in ints):
        return _open_range(c, ints[0], ints[1], ints[2], c.dtype(start))
    given = [c.constant(v, n).reshape(-1) for v, n in ((start, "start"), (limit, "limit"), (delta, "delta"))]
    ends = [array[0] for array in given]
    first, last, by = (v.item() for v in ends)
    check_size((max(math.ceil((last - first) / by), 0),), dtype_name(ends[0].dtype), LARGEST_CONSTANT)
    return np.arange(*ends, dtype=ends[0].dtype)


def _open_range(c: OpContext, first: Extent, limit: Extent, by: Extent, dtype: str) -> Operand:
    """Returns a range whose length is known at run time."""
    if not isinstance(by, int):
        raise c.unsupported(f"its delta is {by}, which is known when the input comes; fix it")
    count = largest(ceildiv(limit - first, by) if by > 0 else ceildiv(first - limit, -by), 0)

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        return s.cast(s.const(first, "int64") + s.cast(at[0], "int64") * by, dtype)

    return c.compute("range", [], [count], body, dtype, (first, by))


@rules(
    "indices: ...",
    "depth: () | 1",
    "values: 2",
    attributes={
        "axis": axis_of("len(indices) + 1", default=-1),
        "depth": holds("0 <= it < 2**40", "0 or more", ends=("0", "2**31 - 1")),
    },
)
@kernel("", "OneHot")
@accuracy(EXACT)
def one_hot(c: OpContext, indices: Operand, depth: Operand, values: Operand) -> Operand:
    """Computes the on value where the position along ``axis`` equals the index, else the off value."""
    shape = c.shape(indices)
    axis = c.axis(c.attribute("axis", -1), len(shape) + 1)
    given = c.constant(depth, "depth").reshape(-1)
    extent: Extent = given.tolist()[0] if given.dtype == object else int(given[0])
    result = (*shape[:axis], extent, *shape[axis:])

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        index = s.cast(buffers[0].load(s, [*at[:axis], *at[axis + 1 :]]), "int64")
        index = s.select(index < 0, index + s.const(extent, "int64"), index)
        hit = index.eq(s.cast(at[axis], "int64"))
        return s.select(hit, buffers[1].load(s, [1]), buffers[1].load(s, [0]))

    return c.compute("one_hot", [indices, values], result, body, c.dtype(values))


def _running(c: OpContext, x: Operand, axis: Operand, product: bool) -> Operand:
    shape, dtype = c.shape(x), c.dtype(x)
    along = c.axis(int(c.constant(axis, "axis").reshape(-1)[0]), len(shape))
    exclusive, reverse = bool(c.attribute("exclusive", 0)), bool(c.attribute("reverse", 0))
    others = [*shape[:along], *shape[along + 1 :]] or [1]
    iterations, wide = shape[along], accumulator(dtype)
    kind = "mul" if product else "add"

    def build(p: PrimBuilder) -> None:
        elements = "p" * len(others)
        p.generic(elements, others, [], [(p.outputs[1], lambda *d: d)], lambda s: s.const(int(product), wide))

        def location(t: Any, *d: Any) -> list[Any]:
            at = extent_expr(iterations - 1) - t if reverse else t
            return [*d[:along], at, *d[along : len(shape) - 1]]

        def iteration(source: SSAValue, result: SSAValue, state: SSAValue) -> None:
            def body(s: ScalarBuilder, v: Value, before: Value) -> list[Value]:
                after = s.binary(kind, before, s.cast(v, wide))
                return [s.cast(before if exclusive else after, dtype), after]

            owned: Access = (state, lambda t, *d: d)
            p.generic(
                "p" + elements, [iterations, *others], [(source, location), owned], [(result, location), owned], body
            )

        p.steps(iterations, [p.inputs[0], *p.outputs], iteration)

    return c.g.call(f"running_{kind}", [c.value(x)], [(shape, dtype), (others, wide)], build)[0]


@rules("x: _ ...", "axis: () | 1", attributes={"axis": axis_of("len(x)")})
@kernel("", "CumSum")
@accuracy(ulp=500, sums=True, note="up to 1000 terms")
def cumulative_sum(c: OpContext, x: Operand, axis: Operand) -> Operand:
    """Computes the sum of the elements up to each one along ``axis``."""
    return _running(c, x, axis, product=False)


@rules("x: _ ...", "axis: () | 1", attributes={"axis": axis_of("len(x)")})
@kernel("", "CumProd")
@accuracy(ulp=500, note="up to 1000 factors")
def cumulative_product(c: OpContext, x: Operand, axis: Operand) -> Operand:
    """Computes the product of the elements up to each one along ``axis``."""
    return _running(c, x, axis, product=True)


@rules("x: _ ...", attributes={"axis": axis_of("len(x)")})
@kernel("landbridge", "CumProd")
@accuracy(ulp=500, note="up to 1000 factors")
def cumulative_product_along(c: OpContext, x: Operand) -> Operand:
    """Computes the same, where the axis is an attribute: ONNX has it only from opset 26 on."""
    return _running(c, x, np.asarray(c.attribute("axis", 0)), product=True)


@rules(
    "input: _ _ ...",
    "sequence_lens: B",
    attributes={"batch_axis": one_of(0, 1, default=1), "time_axis": one_of(0, 1, default=0)},
    where=("batch_axis != time_axis", "input[batch_axis] == B"),
    indices={"sequence_lens": Index("0", "input[time_axis]")},
)
@kernel("", "ReverseSequence")
@accuracy(EXACT)
def reverse_sequence(c: OpContext, x: Operand, lengths: Operand) -> Operand:
    """Computes the first ``lengths[b]`` elements along the time axis reversed, for each batch."""
    batch, time = c.attribute("batch_axis", 1), c.attribute("time_axis", 0)

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        length = s.minimum(s.cast(buffers[1].load(s, [at[batch]]), "int64"), c.shape(x)[time])
        t = s.cast(at[time], "int64")
        from_end = s.select(t < length, length - t - 1, t)
        where = list(at)
        where[time] = as_index(s, from_end, c.shape(x)[time])
        return buffers[0].load(s, where)

    return c.compute("reverse_sequence", [x, lengths], c.shape(x), body, c.dtype(x))
