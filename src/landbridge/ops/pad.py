"""Pad: adds elements around tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.errors import ShapeError
from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import at_least, axis_of, distinct_axes, one_of
from landbridge.ops.rules import rules
from landbridge.ops.slicing import index_within, part
from landbridge.sizes import size as sizes
from landbridge.sizes.size import Extent, Size, largest, same

#: Elements of rows, some vectors, from which on they are copied whole.
_LONG_ROW = 32


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
@kernel("", "Pad")
@accuracy(EXACT)
def pad(
    c: OpContext,
    x: Operand,
    pads: Operand | None = None,
    value: Operand | None = None,
    axes: Operand | None = None,
) -> Operand:
    """Adds elements before and after each axis (negative: cuts them off): constant, edge, reflect or wrap."""
    shape, dtype = c.shape(x), c.dtype(x)
    rank = len(shape)
    amounts = c.ints("pads", pads) or []
    along = [c.axis(a, rank) for a in c.ints("axes", axes) or range(rank)]
    if len(amounts) != 2 * len(along):
        raise ShapeError(f"{c.g.node}: Pad has {len(amounts)} pads for {len(along)} axes; two for each are legal")
    low, high = [0] * rank, [0] * rank
    for i, a in enumerate(along):
        low[a], high[a] = amounts[i], amounts[len(along) + i]
    padded_extents = [e + a + b for e, a, b in zip(shape, low, high, strict=True)]
    result = [c.within("a padded extent", e, c.fewest(e)) for e in padded_extents]
    if any(e < 0 for e in result):
        raise ShapeError(f"{c.g.node}: Pad of {shape} by {low} and {high} leaves a negative extent")
    padded = [a for a in range(rank) if not same(low[a], 0) or not same(high[a], 0)]
    if not padded:
        return x
    mode = c.attribute("mode", "constant")
    if mode != "constant" and any(same(shape[a], 0) and not same(result[a], 0) for a in padded):
        raise ShapeError(f"{c.g.node}: Pad with mode {mode!r} of {shape}; an axis without elements has none to repeat")
    given = c.attribute("value", 0.0) if value is None or c.shape(value) == (0,) else value
    fill = None if isinstance(given, SSAValue) else np.asarray(given, numpy_dtype(dtype)).reshape(-1)[0].item()
    values = all(isinstance(amount, int) for amount in (*low, *high))
    retained = [e + min(a, 0) + min(b, 0) for e, a, b in zip(shape, low, high, strict=True)] if values else []
    if mode == "constant" and fill is not None and values and all(sizes.at_least(e, 0) for e in retained):
        x = part(c, x, [max(-a, 0) for a in low], [1] * rank, retained)
        return _constant_pad(c, x, [max(a, 0) for a in low], [max(b, 0) for b in high], fill)
    known = values and all(amount >= 0 for amount in (*low, *high))
    if 0 in shape and 0 not in result:
        if mode != "constant":
            raise ShapeError(
                f"{c.g.node}: Pad of {shape} to {tuple(result)} by {mode}: an empty tensor has no element to repeat; "
                "only mode 'constant' gives it some"
            )
        return c.gather("pad", c.reshape(given, ()), result, lambda *d: [])
    if mode != "constant" and known and rank - 1 in padded and _is_long(shape[-1]):
        return _with_ends(c, mode, x, low, high)
    tabled = [a for a in padded if not any(isinstance(e, Size) for e in (shape[a], low[a], high[a]))]
    operands: list[Operand] = [x, *(_source_index(c, mode, shape[a], low[a], high[a]) for a in tabled)]
    if fill is None:
        operands.append(c.reshape(given, ()))

    def body(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        where, outside = list(at), s.const(False, "bool")
        tables = dict(zip(tabled, buffers[1:], strict=False))
        for a in padded:
            if a in tables:
                index = tables[a].load(s, [at[a]])
                outside = outside | (index < 0)
            else:
                position = s.cast(at[a], "int64") - low[a]
                outside = outside | (position < 0) | (position >= shape[a])
                index = _position(s, c, mode, position, shape[a], low[a], high[a])
            where[a] = index_within(s, index, shape[a])
        loaded = buffers[0].load(s, where)
        if mode != "constant":
            return loaded
        return s.select(outside, buffers[-1].load(s, []) if fill is None else s.const(fill, dtype), loaded)

    return c.compute("pad", operands, result, body, dtype)


def _constant_pad(c: OpContext, x: Operand, low: Sequence[int], high: Sequence[int], fill: float | int) -> Operand:
    """Pads with one known value, as a stage that lowering can fold into its reader."""
    if not any((*low, *high)):
        return x
    shape, dtype = c.shape(x), c.dtype(x)
    result = [e + a + b for e, a, b in zip(shape, low, high, strict=True)]
    if 0 in shape:
        return np.full(result, fill, numpy_dtype(dtype))

    def build(p: PrimBuilder) -> None:
        padded = p.pad(p.inputs[0], low, high, fill)
        p.generic("p" * len(result), result, [(padded, lambda *d: d)], [(p.outputs[0], lambda *d: d)], lambda s, v: v)

    return c.g.call("pad", [c.value(x)], [(result, dtype)], build)[0]


def _is_long(extent: Extent) -> bool:
    """Returns whether rows of ``extent`` elements are worth copying separately from what is repeated around them."""
    return isinstance(extent, int) and extent >= _LONG_ROW


def _with_ends(c: OpContext, mode: str, x: Operand, low: Sequence[int], high: Sequence[int]) -> Operand:
    """Pads by elements of ``x``: rows are copied whole, and only the few elements before and after them are looked
    up.
    """
    shape, last = c.shape(x), c.rank(x) - 1
    tabled = [a for a in range(last) if low[a] or high[a]]
    tables = [_source_index(c, mode, shape[a], low[a], high[a]) for a in (*tabled, last)]
    result = [e + a + b for e, a, b in zip(shape, low, high, strict=True)]

    def build(p: PrimBuilder) -> None:
        source, *places = (BodyBuffer(b, p.dtype(b)) for b in p.inputs)

        def copy(first: int, count: Extent, ends: bool) -> None:
            """Writes ``count`` elements of each row, from ``first`` on: those of a row, or those of its ends."""

            def element(s: ScalarBuilder) -> Value:
                where = [s.index(a) for a in range(last + 1)]
                looked_up = dict(zip(tabled, places, strict=False))
                for axis, table in looked_up.items():
                    where[axis] = index_within(s, table.load(s, [where[axis]]), shape[axis])
                if ends:
                    where[last] = index_within(s, places[-1].load(s, [where[last] + first]), shape[last])
                return source.load(s, where)

            out: Access = (p.outputs[0], lambda *d: [*d[:last], d[last] + first])
            p.generic("p" * (last + 1), [*result[:last], count], [], [out], element)

        copy(low[last], shape[last], ends=False)
        if low[last]:
            copy(0, low[last], ends=True)
        if high[last]:
            copy(low[last] + shape[last], high[last], ends=True)

    return c.g.call("pad", [c.value(v) for v in (x, *tables)], [(result, c.dtype(x))], build)[0]


def _source_index(c: OpContext, mode: str, extent: int, low: int, high: int) -> np.ndarray[Any, Any]:
    """Returns the source of each padded element; -1 is outside."""
    at = np.arange(extent + low + high) - low
    if mode == "constant":
        at = np.where((at < 0) | (at >= extent), -1, at)
    elif mode == "edge":
        at = np.clip(at, 0, extent - 1)
    elif mode == "reflect":
        period = max(2 * (extent - 1), 1)
        at = np.abs((at + extent - 1) % period - (extent - 1)) if extent > 1 else np.zeros_like(at)
    elif mode == "wrap":
        first, rest = max(-low, 0), extent - max(-low, 0) - max(-high, 0)  # the elements that negative padding leaves
        at = first + (at - first) % max(rest, 1)
    else:
        raise _unknown(c, mode)
    return at.astype(np.int64)


def _position(s: ScalarBuilder, c: OpContext, mode: str, at: Value, extent: Extent, low: Extent, high: Extent) -> Value:
    """Returns the source as ``_source_index``, for one element and extents that are known at run time; it may be
    outside.
    """
    if mode in ("constant", "edge"):
        return at
    if mode == "reflect":
        last = extent - 1
        if sizes.at_least(last, low) and sizes.at_least(last, high):
            return s.select(at < 0, -at, s.minimum(at, 2 * last - at))
        mirrored = _remainder(s, at + last, largest(2 * last, 1)) - last
        return s.maximum(mirrored, -mirrored)
    if mode == "wrap":
        first = largest(-low, 0)
        return _remainder(s, at - first, largest(extent - first - largest(-high, 0), 1)) + first
    raise _unknown(c, mode)


def _remainder(s: ScalarBuilder, a: Value, b: Extent) -> Value:
    """Computes ``a mod b``, at least 0."""
    rest = s.binary("rem", a, b)
    return s.select(rest < 0, rest + b, rest)


def _unknown(c: OpContext, mode: str) -> Exception:
    return c.unsupported(f"mode {mode!r}; constant, edge, reflect and wrap are known")
