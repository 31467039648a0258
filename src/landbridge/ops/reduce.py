"""Reductions over axes, and positions of extremes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from landbridge.errors import ShapeError
from landbridge.ir.prim_builder import Body, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator, float_limits, is_float
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, OF_SUMS, SUMS, Accuracy, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import axis_of, one_of
from landbridge.ops.rules import rules
from landbridge.records import record
from landbridge.sizes.size import Extent, expected_size, largest, never_below

Finish = Callable[[ScalarBuilder, Value, Extent], Value]


@record(frozen=True)
class _Kind:
    """``body(s, acc, v)`` from ``identity``, then ``finish(s, total, element count)``."""

    body: Body
    identity: float | int | str = 0
    finish: Finish | None = None


def _mean(s: ScalarBuilder, total: Value, count: Extent) -> Value:
    if is_float(total.dtype):
        return total / count
    return total / s.const(largest(count, 1), total.dtype)


def _absolute(s: ScalarBuilder, v: Value) -> Value:
    return s.math("abs", v) if is_float(v.dtype) else s.select(v < 0, s.neg(v), v)


def _root(s: ScalarBuilder, total: Value, count: Extent) -> Value:
    if is_float(total.dtype):
        return s.sqrt(total)
    return s.cast(s.sqrt(s.cast(total, "float64")), total.dtype)


def _log(s: ScalarBuilder, total: Value, count: Extent) -> Value:
    if is_float(total.dtype):
        return s.math("log", total)
    return s.cast(s.math("log", s.cast(total, "float64")), total.dtype)


_KINDS = {
    "sum": _Kind(lambda s, acc, v: acc + v),
    "mean": _Kind(lambda s, acc, v: acc + v, 0, _mean),
    "prod": _Kind(lambda s, acc, v: acc * v, 1),
    "max": _Kind(lambda s, acc, v: s.maximum(acc, v), "lowest"),
    "min": _Kind(lambda s, acc, v: s.minimum(acc, v), "highest"),
    "l1": _Kind(lambda s, acc, v: acc + _absolute(s, v)),
    "sum_square": _Kind(lambda s, acc, v: acc + v * v),
    "l2": _Kind(lambda s, acc, v: acc + v * v, 0, _root),
    "log_sum": _Kind(lambda s, acc, v: acc + v, 0, _log),
}


def reduced_access(shape: Sequence[int], axes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Loops of a reduction, kept axes first: (which axis each loop runs over, which loop runs over each axis)."""
    order = [a for a in range(len(shape)) if a not in axes] + sorted(axes)
    return order, [order.index(a) for a in range(len(shape))]


def position_dtype(extent: Extent) -> str:
    """Returns the dtype of positions along an axis of ``extent`` during the search: vectors hold twice as many narrow
    ones.
    """
    return "int32" if expected_size(extent) < 2**31 else "int64"


def past_positions(extent: Extent) -> int:
    """Returns a number of ``position_dtype`` that no position along an axis of ``extent`` exceeds."""
    most = never_below(extent)
    return min(most, 2**31 - 1) if position_dtype(extent) == "int32" else most


def reduce(c: OpContext, kind: str, x: Operand, axes: Sequence[int], keepdims: bool) -> Operand:
    """Reduces ``x`` over ``axes``, in its dtype."""
    return c.cast(reduced(c, kind, x, axes, keepdims), c.dtype(x))


def reduced(c: OpContext, kind: str, x: Operand, axes: Sequence[int], keepdims: bool) -> Operand:
    """Reduces ``x`` over ``axes``, in the accumulator of its dtype; finishing arithmetic (the mean's division, a root)
    is a call of its own.
    """
    shape, dtype = c.shape(x), accumulator(c.dtype(x))
    k = _KINDS[kind]
    limits = dict(zip(("lowest", "highest"), float_limits(dtype), strict=True))
    identity = limits[k.identity] if isinstance(k.identity, str) else k.identity
    order, loop = reduced_access(shape, axes)
    retained = len(shape) - len(axes)
    result = [1 if a in axes else e for a, e in enumerate(shape) if keepdims or a not in axes]

    def target(*d: Any) -> list[Any]:
        if keepdims:
            return [0 if a in axes else d[loop[a]] for a in range(len(shape))]
        return list(d[:retained])

    def build(p: PrimBuilder) -> None:
        p.generic(
            "p" * retained + "r" * len(axes),
            [shape[a] for a in order],
            [(p.inputs[0], lambda *d: [d[i] for i in loop])],
            [(p.outputs[0], target)],
            k.body,
            init=identity,
        )

    total: Operand = c.cast(x, dtype) if not axes else x
    if axes:
        total = c.g.call(f"reduce_{kind}", [c.value(x)], [(result, dtype)], build, (tuple(axes), keepdims))[0]
    elif kind in ("l1", "sum_square", "l2"):
        total = c.elementwise(kind, [total], lambda s, v: k.body(s, s.const(0, dtype), v))
    if k.finish is None:
        return total
    finish, count = k.finish, 1
    for a in axes:
        count *= shape[a]
    return c.elementwise(f"finish_{kind}", [total], lambda s, v: finish(s, v, count), depends_on=(count,))


def _axes(c: OpContext, x: Operand, operand: Operand | None) -> list[int]:
    """Returns the axes to reduce: given, or all of them unless ``noop_with_empty_axes``."""
    rank = c.rank(x)
    axes = c.ints("axes", operand)
    if not axes:
        return [] if c.attribute("noop_with_empty_axes", 0) else list(range(rank))
    return sorted({c.axis(a, rank) for a in axes})


_REDUCED = ("data: ...", "axes?: _ | ()")
_REDUCING = {
    "axes": axis_of("len(data)"),
    "keepdims": one_of(0, 1),
    "noop_with_empty_axes": one_of(0, 1),
}

#: What each kind keeps to; the condition of log_sum is 1 + |y|.
_ACCURACY = {
    "max": EXACT,
    "min": EXACT,
    "prod": Accuracy(500, note="up to 1000 factors"),
    "l2": OF_SUMS,
    "log_sum": Accuracy(400, sums=True, note="of terms of one sign; the condition is 1 + |y|"),
}


def _register(op_type: str, kind: str) -> None:
    @rules(*_REDUCED, attributes=_REDUCING)
    @kernel("", op_type)
    @accuracy(_ACCURACY.get(kind, SUMS))
    def handler(c: OpContext, x: Operand, axes: Operand | None = None) -> Operand:
        return reduce(c, kind, x, _axes(c, x, axes), bool(c.attribute("keepdims", 1)))


for _type, _kind in {
    "ReduceSum": "sum", "ReduceMean": "mean", "ReduceProd": "prod", "ReduceMax": "max", "ReduceMin": "min",
    "ReduceL1": "l1", "ReduceL2": "l2", "ReduceSumSquare": "sum_square", "ReduceLogSum": "log_sum",
}.items():  # fmt: skip
    _register(_type, _kind)


def _finite(s: ScalarBuilder, v: Value) -> Value:
    """Returns ``v``, or 0 where it is infinite, as the shift of exponents."""
    return s.select(s.math("abs", v).eq(math.inf), 0.0, v)


@rules(*_REDUCED, attributes=_REDUCING)
@kernel("", "ReduceLogSumExp")
@accuracy(ulp=400, sums=True, note="the condition is 1 + |y|")
def reduce_log_sum_exp(c: OpContext, x: Operand, axes: Operand | None = None) -> Operand:
    """Computes ``log(sum(exp(x)))``, the maximum taken out first."""
    over, dtype = _axes(c, x, axes), c.dtype(x)
    x = x if is_float(dtype) else c.cast(x, "float64")
    top = c.elementwise("finite", [reduced(c, "max", x, over, keepdims=True)], _finite)
    shifted = c.elementwise("exp", [x, top], lambda s, v, m: s.exp(v - m), accumulator(c.dtype(x)))
    total = reduced(c, "sum", shifted, over, keepdims=True)
    result = c.elementwise("log", [total, top], lambda s, v, m: s.math("log", v) + m)
    result = c.cast(result, dtype)
    if c.attribute("keepdims", 1):
        return result
    return c.reshape(result, [e for a, e in enumerate(c.shape(x)) if a not in over])


@rules(
    "data: _ ...",
    attributes={"axis": axis_of("len(data)", default=0), "keepdims": one_of(0, 1), "select_last_index": one_of(0, 1)},
    where=("data[axis] > 0",),
)
@kernel("", "ArgMax", "ArgMin")
@accuracy(EXACT)
def arg_extreme(c: OpContext, x: Operand) -> Operand:
    """Returns the position of the largest or smallest element along ``axis``; NaN counts as both, as in numpy."""
    shape, dtype = c.shape(x), c.dtype(x)
    axis = c.axis(c.attribute("axis", 0), len(shape))
    if not shape[axis]:
        raise ShapeError(f"{c.g.node}: {c.op_type} over an axis of extent 0")
    largest, last = c.op_type == "ArgMax", bool(c.attribute("select_last_index", 0))
    order, loop = reduced_access(shape, [axis])
    loops, n = [shape[a] for a in order], len(shape) - 1
    result = [1 if a == axis else e for a, e in enumerate(shape)]
    where_to = [0 if a == axis else loop[a] for a in range(len(shape))]
    at = position_dtype(shape[axis])

    def build(p: PrimBuilder) -> None:
        best, where = p.temp(loops[:n], dtype), p.temp(loops[:n], at)
        x_access = (p.inputs[0], lambda *d: [d[i] for i in loop])
        p.generic(
            "p" * n + "r",
            loops,
            [x_access],
            [(best, lambda *d: d[:n])],
            lambda s, acc, v: s.maximum(acc, v) if largest else s.minimum(acc, v),
            init=float_limits(dtype)[0 if largest else 1],
        )

        def position(s: ScalarBuilder, acc: Value, v: Value, m: Value) -> Value:
            here = s.cast(s.index(n), at)
            found = s.select(s.matches(v, m), here, s.const(-1 if last else shape[axis] - 1, at))
            return s.maximum(acc, found) if last else s.minimum(acc, found)

        p.generic(
            "p" * n + "r",
            loops,
            [x_access, (best, lambda *d: d[:n])],
            [(where, lambda *d: d[:n])],
            position,
            init=0 if last else past_positions(shape[axis]),
        )
        p.generic(
            "p" * n,
            loops[:n],
            [(where, lambda *d: d)],
            [(p.outputs[0], lambda *d: [0 if a == axis else d[w] for a, w in enumerate(where_to)])],
            lambda s, v: s.cast(v, "int64"),
        )

    found = c.g.call(c.op_type.lower(), [c.value(x)], [(result, "int64")], build)[0]
    if c.attribute("keepdims", 1):
        return found
    return c.reshape(found, [e for a, e in enumerate(shape) if a != axis])
