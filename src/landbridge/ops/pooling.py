"""Pools over windows and over whole images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.ir.prim_builder import Body, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator, float_limits
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import LARGEST_CONSTANT, check_size, element_count
from landbridge.operators import Handler, kernel
from landbridge.ops.accuracy import EXACT, OF_SUMS, SUMS, accuracy
from landbridge.ops.context import Array, BodyBuffer, OpContext, Operand
from landbridge.ops.legal import Condition, Legal, at_least, not_empty, one_of
from landbridge.ops.reduce import reduce, reduced
from landbridge.ops.rules import rules
from landbridge.ops.windows import WINDOWS, Windows, windows
from landbridge.sizes.size import Extent, Size, never_below
from landbridge.sizes.size import at_least as at_least_size


def _pool_rules(**attributes: Legal) -> Callable[[Handler], Handler]:
    """Returns the decorator with the rules of a pool over windows, whose own ``attributes`` are added to the common
    ones.
    """
    return rules(
        "X: N C *D",
        attributes={**WINDOWS, "ceil_mode": one_of(0, 1), **attributes},
        where=(
            "len(D) > 0",
            Condition(
                "all(p < k for p, k in zip(pads, kernel_shape * 2))", "each of pads is less than its kernel_shape"
            ),
        ),
    )


def _pool(c: OpContext, name: str, x: Operand, w: Windows, body: Body, identity: float | int, dtype: str) -> Operand:
    """Returns the reduction of each window of ``x`` by ``body``, [N, C, *output] of ``dtype``.

    ``name`` is that of the kernel. ``identity`` is the value that the accumulator starts with and that padding has.
    """
    n, channels = c.shape(x)[:2]
    rank = len(w.kernel)

    def build(p: PrimBuilder) -> None:
        source = p.inputs[0]
        if w.padded:
            source = p.pad(source, (0, 0, *w.low), (0, 0, *w.high), identity)

        def access(n: Any, ch: Any, *r: Any) -> Sequence[Any]:
            taps = zip(r[:rank], w.stride, r[rank:], w.dilation, strict=True)
            return [n, ch, *(o * s + k * d for o, s, k, d in taps)]

        p.generic(
            "pp" + "p" * rank + "r" * rank,
            (n, channels, *w.output, *w.kernel),
            [(source, access)],
            [(p.outputs[0], lambda *d: d[: rank + 2])],
            body,
            init=identity,
        )

    return c.g.call(name, [c.value(x)], [((n, channels, *w.output), dtype)], build)[0]


def _without_windows(c: OpContext, x: Operand, w: Windows, *dtypes: str) -> list[Operand] | None:
    """Returns an empty result for each of ``dtypes`` where the output has an extent of 0, as no window
    fits; else None.
    """
    if 0 not in w.output:
        return None
    shape = (*c.shape(x)[:2], *w.output)
    return [c.g.reshape(c.value(np.zeros(0, numpy_dtype(dtype))), shape) for dtype in dtypes]


def _windows(c: OpContext, x: Operand) -> Windows:
    kernel = c.ints("kernel_shape") or []
    return windows(c, c.shape(x)[2:], kernel, bool(c.attribute("ceil_mode", 0)), may_be_empty=True)


@_pool_rules(storage_order=one_of(0, 1))
@kernel("", "MaxPool")
@accuracy(EXACT)
def max_pool(c: OpContext, x: Operand) -> Operand | list[Operand]:
    """Computes the largest element of each window, NaN if one is, and the position in ``x`` of the first such."""
    low, w = float_limits(c.dtype(x))[0], _windows(c, x)
    empty = _without_windows(c, x, w, c.dtype(x), "int64")
    if empty is not None:
        return empty[: c.outputs]
    largest = _pool(c, "max_pool", x, w, lambda s, acc, v: s.maximum(acc, v), low, c.dtype(x))
    return [largest, _positions(c, x, w, largest)] if c.outputs > 1 else largest


def _positions(c: OpContext, x: Operand, w: Windows, largest: Operand) -> Operand:
    """Returns the position of the first element of each window that equals its maximum: int64, in shape of ``largest``.

    Positions count over all of ``x``, row-major; with ``storage_order`` 1 the spatial axes count column-major.
    """
    shape, rank = c.shape(x), len(w.kernel)
    n, channels, *spatial = shape
    strides = [element_count(spatial[a + 1 :]) for a in range(rank)]
    if c.attribute("storage_order", 0):
        strides = [element_count(spatial[:a]) for a in range(rank)]
    last = element_count(shape)

    def build(p: PrimBuilder) -> None:
        source = BodyBuffer(p.inputs[0], p.dtype(p.inputs[0]))

        def body(s: ScalarBuilder, acc: Value, top: Value) -> Value:
            d = [s.index(i) for i in range(2 + 2 * rank)]
            flat, inside, where = (d[0] * channels + d[1]) * element_count(spatial), s.const(True, "bool"), d[:2]
            for a in range(rank):
                at = d[2 + a] * w.stride[a] + d[2 + rank + a] * w.dilation[a] - w.low[a]
                inside = inside & (at >= 0) & (at < spatial[a])
                where.append(s.minimum(s.maximum(at, 0), spatial[a] - 1))
                flat = flat + at * strides[a]
            hit = inside & s.matches(source.load(s, where), top)
            return s.minimum(acc, s.select(hit, s.cast(flat, "int64"), s.const(last, "int64")))

        p.generic(
            "pp" + "p" * rank + "r" * rank,
            (n, channels, *w.output, *w.kernel),
            [(p.inputs[1], lambda *d: d[: rank + 2])],
            [(p.outputs[0], lambda *d: d[: rank + 2])],
            body,
            init=never_below(last),
        )

    result = ((n, channels, *w.output), "int64")
    return c.g.call("max_positions", [c.value(x), c.value(largest)], [result], build)[0]


def _ranges(c: OpContext, x: Operand, w: Windows, include_pad: bool) -> list[tuple[Extent, Extent]]:
    """Returns, for each axis, the half-open range of positions that average pools count: those of the input, and with
    ``include_pad`` the padding that the model declares.
    """
    inside = c.shape(x)[2:]
    if include_pad:
        return [(-low, e + high) for low, e, high in zip(w.low, inside, w.declared_high, strict=True)]
    return [(0, e) for e in inside]


def _whole(w: Windows, counted: Sequence[tuple[Extent, Extent]]) -> bool:
    """Returns whether every tap of every window is in ``counted``, so that all windows have the same divisor."""
    return all(
        at_least_size(-w.low[i], first) and at_least_size(last + w.low[i], w.reach(i))
        for i, (first, last) in enumerate(counted)
    )


def _counts(w: Windows, counted: Sequence[tuple[Extent, Extent]]) -> Array:
    """Returns the divisor of each window, int64 over output positions: its taps in ``counted``, at least 1."""
    for output, taps in zip(w.output, w.kernel, strict=True):
        check_size((output, taps), "int64", LARGEST_CONSTANT)
    check_size(w.output, "int64", LARGEST_CONSTANT)
    total = np.ones((), np.int64)
    for i, ends in enumerate(counted):
        first, last = map(int, ends)
        start = np.arange(int(w.output[i]))[:, None] * w.stride[i] - int(w.low[i])
        at = start + np.arange(w.kernel[i]) * w.dilation[i]
        total = total[..., None] * ((at >= first) & (at < last)).sum(1)
    return np.maximum(total, 1)


def _counted(s: ScalarBuilder, w: Windows, counted: Sequence[tuple[Extent, Extent]]) -> Value:
    """Emits the divisor of the window at the current output position, as ``_counts``, for extents known
    only in a run.
    """
    total = s.const(1, "int64")
    for i, (first, last) in enumerate(counted):
        start = s.cast(s.index(2 + i), "int64") * w.stride[i] - w.low[i]
        taps = s.const(0, "int64")
        for k in range(w.kernel[i]):
            at = start + k * w.dilation[i]
            taps = taps + s.cast((at >= first) & (at < last), "int64")
        total = total * taps
    return s.maximum(total, 1)


@_pool_rules(count_include_pad=one_of(0, 1))
@kernel("", "AveragePool")
@accuracy(SUMS)
def average_pool(c: OpContext, x: Operand) -> Operand:
    """Computes the mean of each window; 0 where dilation puts it wholly into the padding, as in onnxruntime."""
    w, dtype = _windows(c, x), c.dtype(x)
    wide = accumulator(dtype)
    if (empty := _without_windows(c, x, w, dtype)) is not None:
        return empty[0]
    total = _pool(c, "sum_pool", x, w, lambda s, acc, v: acc + v, 0, wide)
    counted = _ranges(c, x, w, bool(c.attribute("count_include_pad", 0)))
    if _whole(w, counted):
        taps = np.asarray(element_count(w.kernel), numpy_dtype(wide))
        return c.elementwise("average", [total, taps], lambda s, v, k: v / k, dtype)
    if any(isinstance(e, Size) for e in w.output):
        return c.elementwise("average", [total], lambda s, v: v / s.cast(_counted(s, w, counted), wide), dtype)
    counts = _counts(w, counted).astype(numpy_dtype(wide))
    return c.elementwise("average", [total, counts], lambda s, v, k: v / k, dtype)


@_pool_rules(p=at_least(1))
@kernel("", "LpPool")
@accuracy(OF_SUMS)
def lp_pool(c: OpContext, x: Operand) -> Operand:
    """Computes the ``p``-norm of each window."""
    p = float(c.attribute("p", 2))
    w = _windows(c, x)
    if (empty := _without_windows(c, x, w, c.dtype(x))) is not None:
        return empty[0]
    powered = _powered(c, x, p)
    total = _pool(c, "sum_pool", powered, w, lambda s, acc, v: acc + v, 0, c.dtype(powered))
    return _root(c, total, p, c.dtype(x))


def _powered(c: OpContext, x: Operand, p: float) -> Operand:
    """Computes ``|x| ** p``, in the accumulator of the dtype of ``x``."""

    def body(s: ScalarBuilder, v: Value) -> Value:
        if p == 2:
            return v * v
        return s.math("abs", v) if p == 1 else s.pow(s.math("abs", v), p)

    return c.elementwise("lp", [x], body, accumulator(c.dtype(x)))


def _root(c: OpContext, total: Operand, p: float, dtype: str) -> Operand:
    """Computes ``total ** (1 / p)``, in ``dtype``."""
    return c.elementwise("root", [total], lambda s, v: s.sqrt(v) if p == 2 else v if p == 1 else s.pow(v, 1 / p), dtype)


def _global(c: OpContext, x: Operand, kind: str) -> Operand:
    return reduce(c, kind, x, list(range(2, c.rank(x))), keepdims=True)


@rules("X: N C *D", where=("len(D) > 0", not_empty("D", "each channel of X")))
@kernel("", "GlobalMaxPool")
@accuracy(EXACT)
def global_max_pool(c: OpContext, x: Operand) -> Operand:
    """Computes the largest element of each channel."""
    return _global(c, x, "max")


@rules("X: N C *D", where=("len(D) > 0", not_empty("D", "each channel of X")))
@kernel("", "GlobalAveragePool")
@accuracy(SUMS)
def global_average_pool(c: OpContext, x: Operand) -> Operand:
    """Computes the mean of each channel."""
    return _global(c, x, "mean")


@rules("X: N C *D", attributes={"p": at_least(1)}, where=("len(D) > 0",))
@kernel("", "GlobalLpPool")
@accuracy(OF_SUMS)
def global_lp_pool(c: OpContext, x: Operand) -> Operand:
    """Computes the ``p``-norm of each channel."""
    p = float(c.attribute("p", 2))
    total = reduced(c, "sum", _powered(c, x, p), list(range(2, c.rank(x))), keepdims=True)
    return _root(c, total, p, c.dtype(x))
