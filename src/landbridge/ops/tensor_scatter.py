"""TensorScatter: new keys or values written into a cache, from a position of its own for each sequence of the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import axis_of, one_of
from landbridge.ops.rules import rules
from landbridge.ops.scatter_steps import scatter_by_steps
from landbridge.sizes.size import at_least


@rules(
    "past_cache: B _ ...",
    "update: B _ ...",
    "write_indices?: B",
    attributes={"axis": axis_of("len(past_cache)"), "mode": one_of("linear", "circular")},
    where=("len(update) == len(past_cache)",),
)
@kernel("", "TensorScatter", since=24)
@accuracy(EXACT)
def tensor_scatter(c: OpContext, cache: Operand, update: Operand, starts: Operand | None = None) -> Operand:
    """Writes ``update`` into ``cache`` along ``axis`` from ``starts`` [B] on, 0 where these are left out.

    A position that is written past the end is dropped; with the mode ``circular`` it goes on from the first.
    """
    shape, new = c.shape(cache), c.shape(update)
    axis = c.axis(c.attribute("axis", -2), len(shape))
    if axis == 0 or any(new[a] != shape[a] for a in range(len(shape)) if a != axis):
        raise c.unsupported(f"an update of {new} along axis {axis} of a cache of {shape}")
    if 0 in (*shape, *new):
        return cache
    length, count = shape[axis], new[axis]
    circular = c.attribute("mode", "linear") == "circular"
    if circular and not at_least(length, 1):
        raise c.unsupported(f"positions that wrap around along an axis of {length}, which may be empty; legal: from 1")
    others = [a for a in range(len(shape)) if a != axis]
    loops = (count, *(new[a] for a in others))

    def location(
        s: ScalarBuilder, indices: BodyBuffer, at: Sequence[Value]
    ) -> tuple[Mapping[int, Value], Mapping[int, Value], Sequence[Value]]:
        by_axis = dict(zip((axis, *others), at, strict=True))
        start = s.cast(indices.load(s, [by_axis[0]]), "int64")
        number = start + s.cast(at[0], "int64")
        # The rest of a negative number is negative, which counts from the end; where the axis ends, nothing lands.
        number = s.binary("rem", number, length) if circular else s.select(number < 0, length, number)
        return {axis: number}, {a: by_axis[a] for a in others}, [by_axis[a] for a in range(len(shape))]

    if not circular:
        c.g.grows(cache, axis, 0, count, starts)
    indices = np.zeros(shape[0], np.int64) if starts is None else starts
    return scatter_by_steps(c, cache, indices, update, loops, "", location)
