"""Softmax and LogSoftmax: maximum, exponential, sum and division in one PrimFunc."""

from __future__ import annotations

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator, float_limits
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import accuracy
from landbridge.ops.activation import first_maximum
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import axis_of, between
from landbridge.ops.reduce import reduced_access
from landbridge.ops.rules import rules


def softmax_along(c: OpContext, x: Operand, axis: int, log: bool) -> Operand:
    """Returns the (log of the) softmax along one axis."""
    shape, dtype = c.shape(x), c.dtype(x)
    order, loop = reduced_access(shape, [axis])
    loops, n = [shape[a] for a in order], len(shape) - 1

    def build(p: PrimBuilder) -> None:
        wide = accumulator(dtype)
        top, total = p.temp(loops[:n], wide), p.temp(loops[:n], wide)

        def whole(*d: object) -> list[object]:
            return [d[i] for i in loop]

        def row(*d: object) -> tuple[object, ...]:
            return d[:n]

        def stage(kind: str, ins: list[object], out: object, body: object, init: float | None = None) -> None:
            p.generic("p" * n + kind, loops, ins, [out], body, init)  # type: ignore[arg-type, list-item]

        source, target = (p.inputs[0], whole), (p.outputs[0], whole)

        def largest(s: ScalarBuilder, acc: Value, v: Value) -> Value:
            return s.maximum(acc, v)

        stage("r", [source], (top, row), largest, float_limits(dtype)[0])
        if log:
            stage("r", [source, (top, row)], (total, row), lambda s, acc, v, m: acc + s.exp(v - m), 0)
            stage("p", [source, (top, row), (total, row)], target, lambda s, v, m, t: v - m - s.math("log", t))
            return
        powers = target if wide == dtype else (p.temp(shape, wide), whole)
        stage("p", [source, (top, row)], powers, lambda s, v, m: s.exp(v - m))
        stage("r", [powers], (total, row), lambda s, acc, v: acc + v, 0)
        # A division takes as long as a dozen products: one for each row.
        share = p.temp(loops[:n], wide)
        p.generic("p" * n, loops[:n], [(total, row)], [(share, row)], lambda s, t: 1.0 / t)
        stage("p", [powers, (share, row)], target, lambda s, v, part: v * part)

    name = "log_softmax" if log else "softmax"
    return c.g.call(name, [c.value(x)], [(shape, dtype)], build, (axis,))[0]


@rules("input: _ ...", attributes={"axis": axis_of("len(input)")})
@kernel("", "Softmax", "LogSoftmax", since=13)
@accuracy(ulp=400, note="of Softmax; LogSoftmax within 400 eps of 1 + |x - max| + |y|")
def softmax(c: OpContext, x: Operand) -> Operand:
    """Computes the softmax along ``axis``."""
    axis = c.axis(c.attribute("axis", -1), c.rank(x))
    return softmax_along(c, x, axis, c.op_type == "LogSoftmax")


@rules("input: _ ...", attributes={"axis": between("-len(input)", "len(input)", default=1)})
@kernel("", "Softmax", "LogSoftmax", "Hardmax")
@accuracy(ulp=400, note="of Softmax; LogSoftmax within 400 eps of 1 + |x - max| + |y|")
def softmax_flattened(c: OpContext, x: Operand) -> Operand:
    """Computes the softmax before opset 13: over all elements from ``axis`` on."""
    shape = c.shape(x)
    axis = c.attribute("axis", 1)
    axis += len(shape) if axis < 0 else 0
    flat = c.reshape(x, (element_count(shape[:axis]), element_count(shape[axis:])))
    if c.op_type == "Hardmax":
        return c.reshape(first_maximum(c, flat, 1), shape)
    return c.reshape(softmax_along(c, flat, 1, c.op_type == "LogSoftmax"), shape)
