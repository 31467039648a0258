"""Gather, GatherElements, GatherND, and their scattering inverses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from landbridge.errors import ShapeError
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator, float_limits
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, Accuracy, accuracy
from landbridge.ops.context import Array, BodyBuffer, OpContext, Operand
from landbridge.ops.legal import Condition, axis_of, between, one_of
from landbridge.ops.rules import index_of, rules
from landbridge.ops.scatter_steps import scatter_by_steps
from landbridge.ops.slicing import part
from landbridge.sizes.size import Extent, Size, largest, product


def as_index(s: ScalarBuilder, v: Value, extent: Extent) -> Value:
    """Returns a model's index as a loop index, clamped to the bounds."""
    i = wrapped(s, v, extent)
    return s.cast(s.minimum(s.maximum(i, 0), largest(extent - 1, 0)), "index")


def wrapped(s: ScalarBuilder, v: Value, extent: Extent) -> Value:
    """Returns a model's index as an int64: negative ones count from the end, and those out of range stay out of
    range.
    """
    i = s.cast(v, "int64")
    return s.select(i < 0, i + extent, i)


@rules(
    "data: _ ...",
    "indices: ...",
    attributes={"axis": axis_of("len(data)", default=0)},
    indices={"indices": index_of("data[axis]")},
)
@kernel("", "Gather")
@accuracy(EXACT)
def gather(c: OpContext, x: Operand, indices: Operand) -> Operand:
    """Returns slices of ``x`` along ``axis``; a view or an affine read when the indices are constant and regular."""
    shape = c.shape(x)
    axis = c.axis(c.attribute("axis", 0), len(shape))
    picked = c.shape(indices)
    result = (*shape[:axis], *picked, *shape[axis + 1 :])
    if isinstance(indices, np.ndarray):
        regular = _regular(c, indices, shape[axis])
        if regular is not None:
            start, step, count = regular
            first = [start if a == axis else 0 for a in range(len(shape))]
            by = [step if a == axis else 1 for a in range(len(shape))]
            wanted = [count if a == axis else e for a, e in enumerate(shape)]
            return c.reshape(part(c, x, first, by, wanted), result)

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        before, inner, after = at[:axis], at[axis : axis + len(picked)], at[axis + len(picked) :]
        index = as_index(s, buffers[1].load(s, inner), shape[axis])
        return buffers[0].load(s, [*before, index, *after])

    return c.compute("gather", [x, indices], result, body, c.dtype(x))


def _regular(c: OpContext, indices: np.ndarray[Any, Any], extent: int) -> tuple[int, int, int] | None:
    """Returns (first, step, count) of constant indices that form a progression, else None.

    Raises ShapeError where one is out of bounds, unless the node never runs.
    """
    if c.g.never_runs:
        return None
    if indices.dtype == object:  # an index may be a Size, such as that of the last element
        return _one(c, indices.reshape(-1)[0], extent) if indices.size == 1 else None
    flat = indices.reshape(-1).astype(np.int64)
    if flat.size and not (-extent <= flat.min() and flat.max() < extent):
        raise ShapeError(f"{c.g.node}: {c.op_type} index {flat.min()}..{flat.max()} of an axis of {extent}")
    if not flat.size:
        return 0, 1, 0
    from_end = flat < 0
    if isinstance(extent, Size) and from_end.any() and not from_end.all():
        return None
    flat = flat if isinstance(extent, Size) else np.where(from_end, flat + extent, flat)
    steps = np.unique(np.diff(flat))
    if steps.size > 1 or (steps.size == 1 and steps[0] == 0):
        return None
    first = int(flat[0]) + (extent if flat[0] < 0 else 0)
    return first, int(steps[0]) if steps.size else 1, flat.size


def _one(c: OpContext, index: Extent, extent: Extent) -> tuple[int, int, int]:
    if not (index >= -extent and index < extent):
        raise ShapeError(f"{c.g.node}: {c.op_type} index {index} of an axis of {extent}")
    return cast(int, index + extent if index < 0 else index), 1, 1


@rules(
    "data: _ ...",
    "indices: _ ...",
    attributes={"axis": axis_of("len(data)", default=0)},
    where=(
        "len(indices) == len(data)",
        Condition(
            "all(i <= e for a, (i, e) in enumerate(zip(indices, data)) if a != axis % len(data))",
            "indices is no longer than data but along axis",
        ),
    ),
    indices={"indices": index_of("data[axis]")},
)
@kernel("", "GatherElements")
@accuracy(EXACT)
def gather_elements(c: OpContext, x: Operand, indices: Operand) -> Operand:
    """Gathers ``x`` with the index along ``axis`` replaced by ``indices``."""
    shape = c.shape(x)
    axis = c.axis(c.attribute("axis", 0), len(shape))

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        where = list(at)
        where[axis] = as_index(s, buffers[1].load(s, at), shape[axis])
        return buffers[0].load(s, where)

    return c.compute("gather_elements", [x, indices], c.shape(indices), body, c.dtype(x), (axis,))


@rules(
    "data: _ ...",
    "indices: *Q depth",
    attributes={"batch_dims": between("0", "min(len(data), len(Q) + 1) - 1", default=0)},
    where=("1 <= depth <= len(data) - batch_dims", "indices[:batch_dims] == data[:batch_dims]"),
    indices={"indices": index_of("data[batch_dims : batch_dims + depth]")},
)
@kernel("", "GatherND")
@accuracy(EXACT)
def gather_nd(c: OpContext, x: Operand, indices: Operand) -> Operand:
    """Gathers ``x`` at index tuples, after ``batch_dims`` shared axes."""
    shape, (*outer, depth) = c.shape(x), c.shape(indices)
    batch = c.attribute("batch_dims", 0)
    result = (*outer, *shape[batch + depth :])

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        tuple_at, rest = at[: len(outer)], at[len(outer) :]
        where = [as_index(s, buffers[1].load(s, [*tuple_at, i]), shape[batch + i]) for i in range(depth)]
        return buffers[0].load(s, [*at[:batch], *where, *rest])

    return c.compute("gather_nd", [x, indices], result, body, c.dtype(x))


#: How updates combine, and the limit or number they start from.
_COMBINE: dict[str, tuple[str, float | str]] = {
    "add": ("add", 0),
    "mul": ("mul", 1),
    "max": ("max", "lowest"),
    "min": ("min", "highest"),
}


#: Exact without a reduction, and for max and min.
SCATTERED = Accuracy(500, sums=True, note="of add and mul, up to 1000 updates of an element, in order; else exact")


def _fixed(c: OpContext, x: Operand, indices: Operand, updates: Operand) -> Array | None:
    """Returns ``indices`` if they are known at compile time and the last update of an element decides its value; else
    None.

    Few updates are applied one after the other, so that a state that they update in place is not rewritten.
    """
    if not isinstance(indices, np.ndarray) or c.attribute("reduction", "none") != "none":
        return None
    if not (indices.size and all(isinstance(e, int) for e in c.shape(x))):
        return None
    if product(c.shape(x)) >= _FEW * product(c.shape(updates)):
        return None
    return indices


def _placed(
    c: OpContext,
    x: Operand,
    updates: Operand,
    last: Array,
    taken: Callable[[ScalarBuilder, Sequence[Value], Value], Sequence[Value]],
) -> Operand:
    """Returns ``x`` with updates where ``last``, over its first axes, selects one; -1 selects none.

    ``taken(s, element, number)``: the index into ``updates`` of the update of that number for an element.
    """
    shape, dtype, rank, highest = c.shape(x), c.dtype(x), c.rank(x), max(int(last.max(initial=0)), 0)

    def build(p: PrimBuilder) -> None:
        source, table, given = p.inputs
        buffer = BodyBuffer(given, p.dtype(given))

        def placed(s: ScalarBuilder, value: Value, number: Value) -> Value:
            at = [s.index(i) for i in range(rank)]
            update = buffer.load(s, taken(s, at, as_index(s, number, highest + 1)))
            return s.select(number < 0, value, update)

        ins = [(source, lambda *d: d), (table, lambda *d: d[: last.ndim])]
        p.generic("p" * rank, shape, ins, [(p.outputs[0], lambda *d: d)], placed)

    operands = [c.value(x), c.value(last.astype(np.int64)), c.value(updates)]
    return c.g.call("scatter", operands, [(shape, dtype)], build)[0]


#: A tensor that is this many times as large as its fixed updates is not visited for them.
_FEW = 16


def _kind(c: OpContext) -> str:
    return _COMBINE.get(c.attribute("reduction", "none"), ("", 0))[0]


def _needs_steps(c: OpContext, x: Operand, indices: Operand) -> bool:
    """Returns whether updates are applied one after the other, so that a state is updated in place. Narrow floats are
    accumulated in wider ones, which only the search for updates supports.
    """
    if 0 in c.shape(indices) or 0 in c.shape(x):
        return False
    return _kind(c) not in ("add", "mul") or accumulator(c.dtype(x)) == c.dtype(x)


def _scatter(
    c: OpContext,
    x: Operand,
    indices: Operand,
    updates: Operand,
    loops: Sequence[int],
    hit: Callable[[ScalarBuilder, Sequence[BodyBuffer], Sequence[Value], Sequence[Value]], tuple[Value, Value]],
) -> Operand:
    """Returns ``x`` with updates: each element of ``x`` searches the updates that hit it, so that no writers conflict
    on any target.

    ``hit(s, (indices, updates), element, update)`` returns whether the update hits the element, and its value. An index
    out of range hits none.
    """
    if 0 in c.shape(indices):
        return x
    shape, dtype, rank = c.shape(x), c.dtype(x), c.rank(x)
    reduction = c.attribute("reduction", "none")
    kind, start = _COMBINE.get(reduction, ("", 0))
    limits = dict(zip(("lowest", "highest"), float_limits(dtype), strict=True))
    searched = ("p" * rank + "r" * len(loops), (*shape, *loops))

    def element(*d: Any) -> Sequence[Any]:
        return d[:rank]

    def build(p: PrimBuilder) -> None:
        source, target = p.inputs[0], p.outputs[0]
        buffers = [BodyBuffer(b, p.dtype(b)) for b in p.inputs[1:]]
        total = p.temp(shape, accumulator(dtype))

        def found(s: ScalarBuilder) -> tuple[Value, Value]:
            at = [s.index(i) for i in range(rank)]
            return hit(s, buffers, at, [s.index(rank + i) for i in range(len(loops))])

        def latest(s: ScalarBuilder, value: Value, seen: Value) -> list[Value]:
            lands, update = found(s)
            return [s.select(lands, s.cast(update, value.dtype), value), seen | lands]

        def combined(s: ScalarBuilder, value: Value) -> Value:
            lands, update = found(s)
            return s.select(lands, s.binary(kind, value, s.cast(update, value.dtype)), value)

        if not kind:
            seen = p.temp(shape, "bool")
            p.generic(*searched, [], [(total, element), (seen, element)], latest, init=0)
            ins = [(source, element), (total, element), (seen, element)]
            p.generic("p" * rank, shape, ins, [(target, element)], lambda s, v, u, hit: s.select(hit, u, v))
            return
        init = limits[start] if isinstance(start, str) else start
        p.generic(*searched, [], [(total, element)], combined, init=init)
        ins = [(source, element), (total, element)]
        p.generic("p" * rank, shape, ins, [(target, element)], lambda s, v, u: s.binary(kind, v, u))

    return c.g.call("scatter", [c.value(v) for v in (x, indices, updates)], [(shape, dtype)], build)[0]


@rules(
    "data: _ ...",
    "indices: *I",
    "updates: *I",
    attributes={
        "axis": axis_of("len(data)", default=0),
        "reduction": one_of("none", "add", "mul", "max", "min"),
    },
    where=(
        "len(I) == len(data)",
        Condition(
            "all(i <= e for a, (i, e) in enumerate(zip(I, data)) if a != axis % len(data))",
            "indices I is no longer than data but along axis",
        ),
    ),
    indices={"indices": index_of("data[axis]")},
)
@kernel("", "ScatterElements", "Scatter")
@accuracy(SCATTERED)
def scatter_elements(c: OpContext, x: Operand, indices: Operand, updates: Operand) -> Operand:
    """Writes ``updates`` at ``indices`` along ``axis``."""
    shape, extents = c.shape(x), c.shape(indices)
    axis = c.axis(c.attribute("axis", 0), len(shape))

    def hit(
        s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value], update: Sequence[Value]
    ) -> tuple[Value, Value]:
        where = list(at)
        inside: Value | None = None
        for a, extent in enumerate(extents):
            if a != axis and extent < shape[a]:
                test = at[a] < extent
                inside = test if inside is None else inside & test
                where[a] = s.minimum(at[a], extent - 1)
        where[axis] = update[0]
        lands = wrapped(s, buffers[0].load(s, where), shape[axis]).eq(s.cast(at[axis], "int64"))
        return lands if inside is None else lands & inside, buffers[1].load(s, where)

    fixed = _fixed(c, x, indices, updates)
    if fixed is not None:
        last = np.full(shape, -1)
        where = np.indices(extents)
        ordinals = where[axis].copy()
        where[axis] = np.where(fixed < 0, fixed + shape[axis], fixed)
        inside = (where[axis] >= 0) & (where[axis] < shape[axis])
        last[tuple(w[inside] for w in where)] = ordinals[inside]  # numpy keeps the last of equal positions

        def taken(s: ScalarBuilder, at: Sequence[Value], number: Value) -> list[Value]:
            return [number if a == axis else s.minimum(at[a], e - 1) for a, e in enumerate(extents)]

        return _placed(c, x, updates, last, taken)
    if _needs_steps(c, x, indices):
        others = [a for a in range(len(shape)) if a != axis]

        def location(
            s: ScalarBuilder, ordinals: BodyBuffer, at: Sequence[Value]
        ) -> tuple[Mapping[int, Value], Mapping[int, Value], Sequence[Value]]:
            by_axis = dict(zip((axis, *others), at, strict=True))
            update = [by_axis[a] for a in range(len(shape))]
            return {axis: ordinals.load(s, update)}, {a: by_axis[a] for a in others}, update

        loops = [extents[axis], *(extents[a] for a in others)]
        return scatter_by_steps(c, x, indices, updates, loops, _kind(c), location)
    return _scatter(c, x, indices, updates, [extents[axis]], hit)


@rules(
    "data: _ ...",
    "indices: *Q depth",
    "updates: ...",
    attributes={"reduction": one_of("none", "add", "mul", "max", "min")},
    where=(
        "1 <= depth <= len(data)",
        Condition(
            "updates == Q + data[depth:]", "updates is as indices without its last axis, then data from axis depth on"
        ),
    ),
    indices={"indices": index_of("data[:depth]")},
)
@kernel("", "ScatterND")
@accuracy(SCATTERED)
def scatter_nd(c: OpContext, x: Operand, indices: Operand, updates: Operand) -> Operand:
    """Writes slices of ``updates`` at index tuples."""
    shape, (*outer, depth) = c.shape(x), c.shape(indices)

    def hit(
        s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value], update: Sequence[Value]
    ) -> tuple[Value, Value]:
        lands = s.const(True, "bool")
        for i in range(depth):
            index = wrapped(s, buffers[0].load(s, [*update, i]), shape[i])
            lands = lands & index.eq(s.cast(at[i], "int64"))
        return lands, buffers[1].load(s, [*update, *at[depth:]])

    fixed = _fixed(c, x, indices, updates)
    if fixed is not None:
        rows = fixed.reshape(-1, depth)
        rows = np.where(rows < 0, rows + shape[:depth], rows)
        inside = ((rows >= 0) & (rows < shape[:depth])).all(1)
        last = np.full(shape[:depth], -1)
        last[tuple(rows[inside].T)] = np.arange(len(rows))[inside]
        flat = c.reshape(updates, (len(rows), *shape[depth:]))
        return _placed(c, x, flat, last, lambda s, at, number: [number, *at[depth:]])
    count = product(outer)
    if _needs_steps(c, x, indices):

        def location(
            s: ScalarBuilder, ordinals: BodyBuffer, at: Sequence[Value]
        ) -> tuple[Mapping[int, Value], Mapping[int, Value], Sequence[Value]]:
            picked = {a: ordinals.load(s, [at[0], a]) for a in range(depth)}
            return picked, dict(enumerate(at[1:], depth)), at

        tuples, new = c.reshape(indices, (count, depth)), c.reshape(updates, (count, *shape[depth:]))
        return scatter_by_steps(c, x, tuples, new, (count, *shape[depth:]), _kind(c), location)
    return _scatter(c, x, indices, updates, outer, hit)
