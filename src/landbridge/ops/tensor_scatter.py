"""TensorScatter: new keys or values written into a cache, from a position of its own for each sequence of the batch."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import axis_of, one_of
from landbridge.ops.registry import operator
from landbridge.ops.rules import rules
from landbridge.ops.slicing import index_within


@rules(
    "past_cache: B _ ...",
    "update: B _ ...",
    "write_indices?: B",
    attributes={"axis": axis_of("len(past_cache)"), "mode": one_of("linear", "circular")},
    where=("len(update) == len(past_cache)",),
)
@operator("TensorScatter", since=24)
@accuracy(EXACT)
def tensor_scatter(c: OpContext, cache: Operand, update: Operand, starts: Operand | None = None) -> Operand:
    """``cache`` with ``update`` along ``axis`` from ``starts`` [B] on, 0 where these are left out.

    A position that is written past the end is dropped; with the mode ``circular`` it goes on from the first.
    """
    shape, new = c.shape(cache), c.shape(update)
    axis = c.axis(c.attribute("axis", -2), len(shape))
    if axis == 0 or any(new[a] != shape[a] for a in range(len(shape)) if a != axis):
        raise c.unsupported(f"an update of {new} along axis {axis} of a cache of {shape}")
    length, count = shape[axis], new[axis]
    if not (isinstance(length, int) and isinstance(count, int) and count <= length):
        raise c.unsupported(f"{count} positions written along an axis of {length}; legal: numbers, no more than it has")
    circular = c.attribute("mode", "linear") == "circular"

    def value(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        start = s.cast(buffers[2].load(s, [at[0]]), "int64") if starts is not None else s.const(0, "int64")
        number = s.cast(at[axis], "int64") - start
        if circular:
            rest = s.binary("rem", number, length)
            number = s.select(rest < 0, rest + length, rest)
        written = (number >= 0) & (number < count)
        where = [index_within(s, number, count) if a == axis else i for a, i in enumerate(at)]
        return s.select(written, buffers[1].load(s, where), buffers[0].load(s, at))

    operands = [v for v in (cache, update, starts) if v is not None]
    return c.compute("tensor_scatter", operands, shape, value, c.dtype(cache))
