"""Applies updates at indices one after the other: as many steps as there are updates, whatever the size of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.sizes.size import Extent, largest

#: Of (indices, the counters of the loops over updates): the model's index by axis of the data, the loop's counter by
#: each other axis, and where the update lies.
Location: TypeAlias = Callable[
    [ScalarBuilder, BodyBuffer, Sequence[Value]], tuple[Mapping[int, Value], Mapping[int, Value], Sequence[Value]]
]


def scatter_by_steps(
    c: OpContext,
    x: Operand,
    indices: Operand | None,
    updates: Operand,
    loops: Sequence[Extent],
    kind: str,
    location: Location,
) -> Operand:
    """Returns ``x`` with ``updates`` written, or combined by ``kind`` where it is not empty, in the order of
    ``loops[0]``.

    Updates of one iteration of it go to different elements. An index out of range lands nowhere. ``indices`` None:
    ``location`` takes the updates in their place, and reads none of them.
    """
    shape, dtype = c.shape(x), c.dtype(x)

    def build(p: PrimBuilder) -> None:
        target, done = p.outputs
        p.generic("p" * len(shape), shape, [(p.inputs[0], lambda *d: d)], [(target, lambda *d: d)], lambda s, v: v)

        def iteration(*buffers: SSAValue) -> None:
            *given, target, done = buffers
            elements, values, result = (BodyBuffer(b, p.dtype(b)) for b in (given[0], given[-1], target))

            def put(s: ScalarBuilder) -> Value:
                picked, retained, taken = location(s, elements, [s.index(i) for i in range(len(loops))])
                where, inside = dict(retained), s.const(True, "bool")
                for axis, number in picked.items():
                    index = number if number.dtype == "index" else s.cast(number, "int64")
                    index = s.select(index < 0, index + shape[axis], index)
                    inside = inside & (index >= 0) & (index < shape[axis])
                    where[axis] = s.cast(s.minimum(s.maximum(index, 0), largest(shape[axis] - 1, 0)), "index")
                at = [where[axis] for axis in range(len(shape))]
                old, update = result.load(s, at), s.cast(values.load(s, taken), dtype)
                result.store(s, at, s.select(inside, s.binary(kind, old, update) if kind else update, old))
                return s.cast(inside, "int32")  # which every target has

            p.generic("p" * len(loops), loops, [], [(done, lambda *d: d)], put)

        p.steps(loops[0], [*p.inputs[1:], target, done], iteration)

    operands = [c.value(v) for v in (x, indices, updates) if v is not None]
    return c.g.call("scatter", operands, [(shape, dtype), (tuple(loops), "int32")], build)[0]
