"""Normalizations: batch, layer, RMS, instance, group, Lp, local response, mean-variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import OF_SUMS, Accuracy, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import at_least, axis_of, distinct_axes, not_empty, one_of
from landbridge.ops.reduce import reduced
from landbridge.ops.rules import rules
from landbridge.ops.shape import broadcast
from landbridge.ops.unread import unread
from landbridge.sizes.size import Size, same

#: Two passes: no digits of the deviation are lost to the mean.
NORMALIZED = Accuracy(
    400, sums=True, note="the condition is (|x| + the mean of |x|) / deviation * |scale| + |bias|; up to 16384 terms"
)


@rules(
    "X: N C *D | N",
    "scale: C",
    "B: C",
    "input_mean: C",
    "input_var: C",
    attributes={"spatial": one_of(1)},
    where=("len(X) > 1 or C == 1",),
)
@kernel("", "BatchNormalization")
@accuracy(ulp=4, sums=True, note="the condition is |x * a| + |b| of x * a + b")
def batch_normalization(
    c: OpContext, x: Operand, scale: Operand, bias: Operand, mean: Operand, var: Operand
) -> Operand | list[Operand]:
    """Computes ``x * a + b`` for each channel, with constant parameters folded into a and b.

    In training the statistics are those of the batch, and what given ones are updated to are outputs too.
    """
    if c.attribute("training_mode", 0):
        return _of_the_batch(c, x, scale, bias, mean, var)
    epsilon = c.attribute("epsilon", 1e-5)
    column = (-1,) + (1,) * max(c.rank(x) - 2, 0)
    p = [scale, bias, mean, var]
    if all(isinstance(v, np.ndarray) for v in p):
        s, b, m, v = (np.asarray(v, np.float64) for v in p)
        factor = s / np.sqrt(v + epsilon)
        dtype = numpy_dtype(accumulator(c.dtype(x)))
        a, shift = factor.astype(dtype), (b - m * factor).astype(dtype)
        return c.elementwise("batch_norm", [x, a.reshape(column), shift.reshape(column)], lambda s, v, k, t: v * k + t)
    columns = [c.cast(c.reshape(v, (c.shape(v)[0], *column[1:])), accumulator(c.dtype(v))) for v in p]

    def body(s: ScalarBuilder, v: Value, k: Value, t: Value, m: Value, w: Value) -> Value:
        return (v - m) / s.sqrt(w + epsilon) * k + t

    return c.elementwise("batch_norm", [x, *columns], body)


def _of_the_batch(
    c: OpContext, x: Operand, scale: Operand, bias: Operand, mean: Operand, var: Operand
) -> list[Operand]:
    epsilon, momentum = float(c.attribute("epsilon", 1e-5)), float(c.attribute("momentum", 0.9))
    rank, wide = c.rank(x), accumulator(c.dtype(x))
    axes = [a for a in range(rank) if a != 1]
    count = element_count([c.shape(x)[a] for a in axes])
    now = _mean(c, x, axes)
    centered = c.elementwise("center", [x, now], lambda s, v, m: v - m, wide)
    square = reduced(c, "sum_square", centered, axes, keepdims=True)
    columns = [c.cast(c.reshape(p, (c.shape(p)[0], *([1] * (rank - 2)))), wide) for p in (scale, bias)]

    def body(s: ScalarBuilder, v: Value, q: Value, k: Value, t: Value) -> Value:
        return v / s.sqrt(q / count + epsilon) * k + t

    def moved(s: ScalarBuilder, old: Value, new: Value) -> Value:
        return old * momentum + new * (1 - momentum)

    y = c.elementwise("batch_norm", [centered, square, *columns], body, c.dtype(x))
    if c.outputs == 1:
        return [y]
    spread = c.elementwise("variance", [square], lambda s, q: q / count, wide)
    statistics = []
    for old, new in ((mean, now), (var, spread)):
        flat = c.reshape(new, c.shape(old))
        created = c.elementwise("running", [c.cast(old, wide), flat], moved, wide)
        statistics.append(c.cast(created, c.dtype(old)))
    return [y, *statistics]


def _mean(c: OpContext, x: Operand, axes: Sequence[int]) -> Operand:
    """Computes the mean of ``x`` over ``axes``, which are kept, in the accumulator's dtype; the mean of the residuals
    from a rough mean is added, so that equal elements give exactly their value.
    """
    rough = reduced(c, "mean", x, axes, keepdims=True)
    centered = c.elementwise("center", [x, rough], lambda s, v, m: v - m, accumulator(c.dtype(x)))
    return c.elementwise("mean", [rough, reduced(c, "mean", centered, axes, keepdims=True)], lambda s, m, v: m + v)


def normalize_rows(
    c: OpContext,
    x: Operand,
    rows: int,
    epsilon: float,
    scale: tuple[Operand, Sequence[int]] | None,
    bias: tuple[Operand, Sequence[int]] | None,
    centered: bool = True,
) -> list[SSAValue]:
    """Normalizes each group of trailing dimensions after the first ``rows``.

    ``scale`` and ``bias`` come with the loops that index them. ``centered``: subtract the mean (else RMS).
    Results: the normalized tensor, and in the accumulator's dtype the mean and the reciprocal deviation of each row.
    """
    shape, dtype = c.shape(x), c.dtype(x)
    wide = accumulator(dtype)
    rank, count = len(shape), element_count(shape[rows:])
    extra = [e for e in (scale, bias) if e is not None]
    stats = shape[:rows]

    def build(p: PrimBuilder) -> None:
        source, (target, mean, inverse) = p.inputs[0], p.outputs
        total, square = p.temp(stats, wide), p.temp(stats, wide)
        whole, row = (lambda *d: d), (lambda *d: d[:rows])
        kinds = "p" * rows + "r" * (rank - rows)

        def run(kinds: str, loops: Sequence[int], ins: list[Any], out: Any, body: Any, init: Any = None) -> None:
            p.generic(kinds, loops, ins, [out], body, init)

        if centered:
            run(kinds, shape, [(source, whole)], (total, row), lambda s, acc, v: acc + v, 0)
            # The mean of the residuals corrects the error of the sum: equal elements become 0.
            rough, left = p.temp(stats, wide), p.temp(stats, wide)
            run("p" * rows, stats, [(total, row)], (rough, row), lambda s, v: v / count)
            run(kinds, shape, [(source, whole), (rough, row)], (left, row), lambda s, acc, v, m: acc + (v - m), 0)
            run("p" * rows, stats, [(left, row), (rough, row)], (mean, row), lambda s, v, m: m + v / count)
        else:
            run("p" * rows, stats, [], (mean, row), lambda s: s.const(0, wide))

        def deviation(s: ScalarBuilder, acc: Value, v: Value, m: Value) -> Value:
            d = v - m if centered else v
            return acc + d * d

        run(kinds, shape, [(source, whole), (mean, row)], (square, row), deviation, 0)
        run(
            "p" * rows,
            stats,
            [(square, row)],
            (inverse, row),
            lambda s, v: 1.0 / s.sqrt(v / count + epsilon),
        )

        def result(s: ScalarBuilder, v: Value, m: Value, i: Value, *parameters: Value) -> Value:
            y, left = (v - m if centered else v) * i, list(parameters)
            if scale is not None:
                y = y * left.pop(0)
            return y + left.pop(0) if bias is not None else y

        def along(loops: Sequence[int]) -> Any:
            return lambda *d: [0 if same(shape[i], 1) else d[i] for i in loops]

        ins = [(source, whole), (mean, row), (inverse, row)]
        for buffer, (_, loops) in zip(p.inputs[1:], extra, strict=True):
            ins.append((buffer, along(loops)))
        run("p" * rank, shape, ins, (target, whole), result)

    inputs = [c.value(x), *(c.value(v) for v, _ in extra)]
    loops = [None if each is None else tuple(each[1]) for each in (scale, bias)]
    key = (rows, epsilon, centered, *loops)
    return c.g.call("normalize", inputs, [(shape, dtype), (stats, wide), (stats, wide)], build, key)


@rules(
    "X: _ ...",
    "Scale: ...",
    "B?: ...",
    attributes={"axis": axis_of("len(X)", default=-1)},
    where=(
        "broadcasts(Scale, X[axis:])",
        "broadcasts(B, X[axis:])",
        not_empty("X[axis:]", "each normalized part of X"),
    ),
)
@kernel("", "LayerNormalization")
@unread(1, 2)
@accuracy(NORMALIZED)
def layer_normalization(c: OpContext, x: Operand, scale: Operand, bias: Operand | None = None) -> Sequence[Operand]:
    """Normalizes over all axes from ``axis`` on; the other outputs are mean and reciprocal deviation."""
    shape = c.shape(x)
    axis = c.axis(c.attribute("axis", -1), len(shape))
    parameters = [_spread(c, v, shape, axis) for v in (scale, bias)]
    y, mean, inverse = normalize_rows(c, x, axis, c.attribute("epsilon", 1e-5), parameters[0], parameters[1])
    stats = (*shape[:axis], *(1,) * (len(shape) - axis))
    return [y, c.reshape(mean, stats), c.reshape(inverse, stats)]


@rules(
    "X: _ ...",
    "scale: ...",
    attributes={"axis": axis_of("len(X)", default=-1)},
    where=("broadcasts(scale, X[axis:])", not_empty("X[axis:]", "each normalized part of X")),
)
@kernel("", "RMSNormalization")
@unread(1)
@accuracy(NORMALIZED)
def rms_normalization(c: OpContext, x: Operand, scale: Operand) -> Operand:
    """Computes layer normalization without the mean."""
    shape = c.shape(x)
    axis = c.axis(c.attribute("axis", -1), len(shape))
    parameter = _spread(c, scale, shape, axis)
    return normalize_rows(c, x, axis, c.attribute("epsilon", 1e-5), parameter, None, centered=False)[0]


def _spread(c: OpContext, v: Operand | None, shape: Sequence[int], axis: int) -> tuple[Operand, Sequence[int]] | None:
    """Expands a parameter that broadcasts against the normalized axes, and returns it with its loops."""
    if v is None:
        return None
    wanted = tuple(shape[axis:])
    v = c.repeated(v, wanted, "a parameter")
    if c.shape(v) != wanted:
        if isinstance(v, np.ndarray) and not any(isinstance(e, Size) for e in wanted):
            v = np.ascontiguousarray(np.broadcast_to(v, wanted))
        else:
            v = broadcast(c, v, wanted)
    return v, range(axis, len(shape))


@rules("input: N C *D", "scale: C", "B: C", where=("len(D) > 0", not_empty("D", "each channel of input")))
@kernel("", "InstanceNormalization")
@accuracy(NORMALIZED)
def instance_normalization(c: OpContext, x: Operand, scale: Operand, bias: Operand) -> Operand:
    """Normalizes each channel of each image separately."""
    epsilon = c.attribute("epsilon", 1e-5)
    return normalize_rows(c, x, 2, epsilon, (scale, [1]), (bias, [1]))[0]


@rules(
    "X: N C *D",
    "scale: C",
    "bias: C",
    attributes={"num_groups": at_least(1)},
    where=("C % num_groups == 0", not_empty("(C, *D)", "each image of X")),
)
@kernel("", "GroupNormalization", since=21)
@accuracy(NORMALIZED)
def group_normalization(c: OpContext, x: Operand, scale: Operand, bias: Operand) -> Operand:
    """Normalizes groups of channels; scale and bias are those of each channel."""
    groups = c.attribute("num_groups")
    n, channels, *spatial = c.shape(x)
    shape = (n, groups, channels // groups, element_count(spatial))
    parameters = [(c.reshape(v, (groups, channels // groups)), [1, 2]) for v in (scale, bias)]
    y = normalize_rows(c, c.reshape(x, shape), 2, c.attribute("epsilon", 1e-5), parameters[0], parameters[1])[0]
    return c.reshape(y, (n, channels, *spatial))


@rules("input: _ ...", attributes={"axis": axis_of("len(input)"), "p": one_of(1, 2)})
@kernel("", "LpNormalization")
@accuracy(OF_SUMS)
def lp_normalization(c: OpContext, x: Operand) -> Operand:
    """Computes ``x`` over its ``p``-norm along ``axis``."""
    axis = c.axis(c.attribute("axis", -1), c.rank(x))
    norm = reduced(c, "l1" if c.attribute("p", 2) == 1 else "l2", x, [axis], keepdims=True)
    return c.elementwise("divide", [x, norm], lambda s, v, n: s.select(n.eq(0), 0.0, v / n), c.dtype(x))


@rules(
    "X: _ ...",
    attributes={"axes": axis_of("len(X)", default=[0, 2, 3])},
    where=(not_empty("X", "X"), "len(axes) > 0 and max(axes) < len(X)", distinct_axes("len(X)")),
)
@kernel("", "MeanVarianceNormalization")
@accuracy(NORMALIZED)
def mean_variance_normalization(c: OpContext, x: Operand) -> Operand:
    """Computes ``(x - mean) / deviation`` over ``axes``."""
    axes = sorted(c.axis(a, c.rank(x)) for a in c.ints("axes") or [0, 2, 3])
    dtype = c.dtype(x)
    mean = _mean(c, x, axes)
    centered = c.elementwise("center", [x, mean], lambda s, v, m: v - m, accumulator(dtype))
    square = reduced(c, "sum_square", centered, axes, keepdims=True)
    count = element_count([c.shape(x)[a] for a in axes])
    return c.elementwise("divide", [centered, square], lambda s, v, q: v / (s.sqrt(q / count) + 1e-9), dtype)


@rules("X: N C ...", attributes={"size": at_least(1, below=1 << 16)})
@kernel("", "LRN")
@accuracy(ulp=24)
def local_response_normalization(c: OpContext, x: Operand) -> Operand:
    """Computes ``x / (bias + alpha / size * sum of squares of near channels) ** beta``."""
    size, shape = c.attribute("size"), c.shape(x)
    alpha, beta, bias = c.attribute("alpha", 1e-4), c.attribute("beta", 0.75), c.attribute("bias", 1.0)
    before, rank, dtype = (size - 1) // 2, len(shape), c.dtype(x)
    low = [before if a == 1 else 0 for a in range(rank)]
    high = [size - 1 - before if a == 1 else 0 for a in range(rank)]

    def build(p: PrimBuilder) -> None:
        padded = p.pad(p.inputs[0], low, high, 0)
        p.generic(
            "p" * rank + "r",
            (*shape, size),
            [(padded, lambda *d: [d[a] + d[rank] if a == 1 else d[a] for a in range(rank)])],
            [(p.outputs[0], lambda *d: d[:rank])],
            lambda s, acc, v: acc + v * v,
            init=0,
        )

    def body(s: ScalarBuilder, v: Value, t: Value) -> Value:
        base = t * (alpha / size) + bias
        rooted = alpha >= 0 and bias >= 0 and beta in (0.25, 0.5, 0.75, 1.0)  # no base is below 0 then
        return v / (_quarters(s, base, int(4 * beta)) if rooted else s.pow(base, beta))

    total = c.g.call("square_sum", [c.value(x)], [(shape, accumulator(dtype))], build)[0]
    return c.elementwise("lrn", [x, total], body, dtype)


def _quarters(s: ScalarBuilder, base: Value, quarters: int) -> Value:
    """Computes ``base ** (quarters / 4)`` of a base that is not below 0, for one to four quarters, by roots.

    They are exact to rounding, and take a fifth of the time of a power.
    """
    if quarters == 4:
        return base
    root = s.sqrt(base)
    if quarters == 2:
        return root
    return s.sqrt(root) * root if quarters == 3 else s.sqrt(root)
