"""Sums of products of bytes, four at a time, as ``lb.byte_dot`` multiplies them: words of four bytes along the summed
axis, unsigned for data and signed for weights.

With zero points the result is ``sum((x - p) * (w - q))``. If ``w - q`` is a constant that fits a byte, the sum is
``sum(x * w') - p * sum(w')``, whose second part is known except for ``p``. If weights are computed by the run, or do
not fit a byte, it is ``sum(x * w) - q * sum(x) - p * sum(w) + n * p * q``, and the run packs words of weights that are
not constant. All of it wraps like int32, so that the order of operations does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.ir import SSAValue

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import element_count
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.convolution import convolve
from landbridge.ops.matrix_product import batched_product, check_inner, matrix_product
from landbridge.ops.windows import Windows
from landbridge.sizes.size import Extent, Size, same

Array: TypeAlias = np.ndarray[Any, Any]

#: Bytes of a word.
WORD = 4
BYTES = ("uint8", "int8")
#: The highest bit of each byte, and four bytes of 1.
_SIGNS, _ONES = -0x7F7F7F80, 0x01010101


def byte_matmul(c: OpContext, a: Operand, a_zero: Operand | None, weights: Array) -> Operand:
    """Computes ``(a - a_zero) @ weights`` as int32, of bytes [..., K] and int8 weights [K, N]."""
    *lead, depth = c.shape(a)
    check_inner(c, c.shape(a), weights.shape, depth, weights.shape[0])
    data = data_words(c, c.reshape(a, (element_count(lead), depth)), 1)
    total = matrix_product(c, data, weight_words(weights, 0), term=_term)
    total = c.reshape(total, (*lead, weights.shape[1]))
    rows = [*c.shape(a_zero), 1] if a_zero is not None else []
    return without_zero(c, total, c.dtype(a), a_zero, weights.sum(0, dtype=np.int32), rows)


def byte_matmul_of_runs(
    c: OpContext, a: Operand, a_zero: Operand | None, b: Operand, b_zero: Operand | None
) -> Operand:
    """Computes ``(a - a_zero) @ (b - b_zero)`` as int32, of bytes [..., M, K] and [..., K, N], whose leading axes are
    equal or those of ``b`` none. Zero points are one, or one a row of ``a`` and one a column of ``b``.
    """
    (*lead, depth), (*leading_b, inner, columns) = c.shape(a), c.shape(b)
    check_inner(c, c.shape(a), c.shape(b), depth, inner)
    if same(depth, 0):
        return np.zeros((*lead, columns), np.int32)
    # In words, data are ``a + more`` and weights ``b - less``, and 0 past the end.
    more, less = 128 if c.dtype(a) == "int8" else 0, 128 if c.dtype(b) == "uint8" else 0
    if leading_b:
        count = element_count(leading_b)
        a, b = c.reshape(a, (count, lead[-1], depth)), c.reshape(b, (count, inner, columns))
    else:
        a = c.reshape(a, (element_count(lead), depth))
    last = c.rank(a) - 1
    data = data_words(c, a, last, fill=-more)
    weights, sums = _weights(c, b, last - 1, less)
    product = (batched_product if leading_b else matrix_product)(c, data, weights, term=_term)
    rows = _summed(c, data, last, lambda s, v: s.byte_dot(v, s.const(_ONES, "int32")))
    shaped = [(product, (*lead, columns)), (rows, (*lead, 1)), (sums, (*leading_b, 1, columns))]
    zeros = [_shifted(c, a_zero, more, [-1, 1]), _shifted(c, b_zero, -less, [-1])]

    def less_zeros(s: ScalarBuilder, v: Value, of_a: Value, of_b: Value, p: Value, q: Value) -> Value:
        return v - q * of_a - p * of_b + p * q * s.const(depth, "int32")

    return c.elementwise("less", [*(c.reshape(v, shape) for v, shape in shaped), *zeros], less_zeros)


def _shifted(c: OpContext, zero: Operand | None, by: int, column: Sequence[int]) -> Operand:
    """Returns a zero point, 0 if there is none, as int32 plus ``by``; one for each of several is shaped by
    ``column``.
    """
    if zero is None:
        return np.full((), by, np.int32)
    count = element_count(c.shape(zero))
    shape = [] if c.shape(zero) in ((), (1,)) else [count if e == -1 else e for e in column]
    return c.elementwise("zero", [c.cast(c.reshape(zero, shape), "int32")], lambda s, v: v + by)


def _summed(c: OpContext, words: SSAValue, axis: int, term: Callable[[ScalarBuilder, Value], Value]) -> SSAValue:
    """Computes the sums of ``term`` of ``words`` along ``axis``."""
    shape = list(c.shape(words))
    retained = [a for a in range(len(shape)) if a != axis]

    def build(p: PrimBuilder) -> None:
        order = [*retained, axis]
        p.generic(
            "p" * len(retained) + "r",
            [shape[a] for a in order],
            [(p.inputs[0], lambda *d: [d[order.index(a)] for a in range(len(shape))])],
            [(p.outputs[0], lambda *d: d[: len(retained)])],
            lambda s, acc, v: acc + term(s, v),
            init=0,
        )

    return c.g.call("sums", [words], [([shape[a] for a in retained], "int32")], build)[0]


def byte_convolution(
    c: OpContext, x: Operand, zero: Operand | None, weights: Array, shape: Windows, group: int
) -> Operand | None:
    """Returns the convolution of ``x - zero``, bytes, with int8 weights as int32; None where the channels of a group
    fill no words, or run-time values pad open extents.
    """
    _, inner, *taps = weights.shape
    if group > 1 and inner % WORD:
        return None
    if shape.padded and isinstance(zero, SSAValue) and any(isinstance(e, Size) for e in c.shape(x)[2:]):
        return None
    none = (0,) * len(taps)
    fill = int(zero.reshape(-1)[0]) if isinstance(zero, np.ndarray) else 0
    if shape.padded and isinstance(zero, SSAValue):
        x = _padded_by(c, x, shape, zero)
        shape = replace(shape, low=none, high=none)
    data = data_words(c, x, 1, (0, 0, *shape.low), (0, 0, *shape.high), fill)
    total = convolve(c, data, weight_words(weights, 1), replace(shape, low=none, high=none), group, _term)
    sums = weights.sum(tuple(range(1, weights.ndim)), dtype=np.int32).reshape(-1, *(1 for _ in taps))
    return without_zero(c, total, c.dtype(x), zero, sums)


def single_byte_convolution(
    c: OpContext, x: Operand, zero: Operand | None, weights: Array, shape: Windows, group: int
) -> Operand | None:
    """Returns the convolution of ``x - zero``, bytes, with int8 weights as int32, one product at a time; None where the
    zero point is a run-time value.

    It is for channels that fill no words on processors without vectors.
    """
    if isinstance(zero, SSAValue):
        return None
    fill = 0 if zero is None else int(zero.reshape(-1)[0])

    def term(s: ScalarBuilder, total: Value, byte: Value, weight: Value) -> Value:
        return total + s.cast(byte, "int32") * s.cast(weight, "int32")

    total = convolve(c, x, weights, shape, group, term, fill=fill, dtype="int32")
    sums = weights.sum(tuple(range(1, weights.ndim)), dtype=np.int32).reshape(-1, *(1 for _ in shape.kernel))
    known = (fill * sums.astype(np.int64)).astype(np.int32)
    return c.elementwise("less", [total, known], lambda s, v, z: v - z) if known.any() else total


def byte_convolution_of_two(
    c: OpContext, x: Operand, zero: Operand | None, weights: Array, weights_zero: Array, shape: Windows
) -> Operand | None:
    """Returns the convolution of ``x - zero`` with ``weights - weights_zero``, which exceed a byte, as int32; None
    where ``byte_convolution`` gives None. A zero point for each result has only its axis.
    """
    more = 128 if weights.dtype == np.uint8 else 0
    total = byte_convolution(c, x, zero, _signed(weights), shape, 1)
    sums = byte_convolution(c, x, zero, np.ones((1, *weights.shape[1:]), np.int8), shape, 1)
    if total is None or sums is None:
        return None
    column = weights_zero.astype(np.int32).reshape(-1, *(1 for _ in shape.kernel)) - more
    return c.elementwise("less", [total, sums, column], lambda s, v, of_x, q: v - q * of_x)


def _padded_by(c: OpContext, x: Operand, shape: Windows, zero: SSAValue) -> SSAValue:
    """Computes ``x``, of known extents, as ``shape`` pads it, with ``zero`` around."""
    extents, dtype, axes = c.shape(x), c.dtype(x), c.rank(x)
    low, high = (0, 0, *shape.low), (0, 0, *shape.high)
    whole = [e + a + b for e, a, b in zip(extents, low, high, strict=True)]
    around = [(cast(int, a), cast(int, b)) for a, b in zip(shape.low, shape.high, strict=True)]
    inside = np.pad(np.ones(extents[2:], bool), around)

    def build(p: PrimBuilder) -> None:
        padded = p.pad(p.inputs[0], low, high, 0)
        p.generic(
            "p" * axes,
            whole,
            [(padded, lambda *d: d), (p.inputs[1], lambda *d: d[2:]), (p.inputs[2], lambda *d: [])],
            [(p.outputs[0], lambda *d: d)],
            lambda s, v, within, fill: s.select(within, v, fill),
        )

    return c.g.call("pad", [c.value(v) for v in (x, inside, c.reshape(zero, ()))], [(whole, dtype)], build)[0]


def _term(s: ScalarBuilder, total: Value, x: Value, w: Value) -> Value:
    return total + s.byte_dot(x, w)


def centered_bytes(weights: Operand, zero: Operand | None, column: Sequence[int]) -> Array | None:
    """Returns ``weights - zero`` as int8; None where they are not constant, or do not fit. A zero point for each of
    several is shaped by ``column``.
    """
    if not isinstance(weights, np.ndarray) or weights.dtype.name not in BYTES:
        return None
    wide = weights.astype(np.int32)
    if zero is not None:
        if not isinstance(zero, np.ndarray):
            return None
        wide = wide - zero.astype(np.int32).reshape(() if zero.size == 1 else tuple(column))
    fits = wide.size == 0 or (wide.min() >= -128 and wide.max() <= 127)
    return wide.astype(np.int8) if fits else None


def _weights(c: OpContext, b: Operand, axis: int, less: int) -> tuple[Operand, Operand]:
    """Returns words of the bytes ``b`` as signed numbers, decreased by ``less``, and their sums along ``axis``."""
    if isinstance(b, np.ndarray):
        signed = _signed(b)
        return weight_words(signed, axis), signed.sum(axis, dtype=np.int32)
    words = data_words(c, b, axis, fill=less, signed=True)
    return words, _summed(c, words, axis, lambda s, v: s.byte_dot(s.const(_ONES, "int32"), v))


def _signed(weights: Array) -> Array:
    """Returns bytes as int8; uint8 is decreased by 128."""
    return weights if weights.dtype == np.int8 else (weights ^ np.uint8(128)).view(np.int8)


def weight_words(weights: Array, axis: int) -> Array:
    """Packs the int8 ``weights`` into int32, each of which holds four along ``axis``; the last is filled with zeros."""
    missing = -weights.shape[axis] % WORD
    padded = np.pad(weights, [(0, missing if a == axis else 0) for a in range(weights.ndim)])
    last = np.ascontiguousarray(np.moveaxis(padded, axis, -1))
    return np.ascontiguousarray(np.moveaxis(last.view("<i4"), -1, axis))


def data_words(
    c: OpContext,
    x: Operand,
    axis: int,
    low: Sequence[Extent] = (),
    high: Sequence[Extent] = (),
    fill: int = 0,
    *,
    signed: bool = False,
) -> SSAValue:
    """Packs the bytes ``x`` into int32, each of which holds four along ``axis`` as unsigned numbers, int8 increased by
    128; ``signed``: as signed numbers, uint8 decreased by 128.

    ``low`` and ``high`` are how many of ``fill``, such a number of x's dtype, surround x along each axis. Bytes of the
    last word past the end are ``fill`` too.
    """
    shape, dtype, rank = list(c.shape(x)), c.dtype(x), c.rank(x)
    before, after = list(low or [0] * rank), list(high or [0] * rank)
    after[axis] = -shape[axis] % WORD
    whole = [e + a + b for e, a, b in zip(shape, before, after, strict=True)]
    words = [e // WORD if a == axis else e for a, e in enumerate(whole)]
    other_sign = (dtype == "int8") != signed

    def build(p: PrimBuilder) -> None:
        source = p.inputs[0]
        if any(e != 0 for e in (*before, *after)):
            source = p.pad(source, before, after, fill)

        def byte(number: int) -> Any:
            return lambda *d: [i * WORD + number if a == axis else i for a, i in enumerate(d)]

        def word(s: ScalarBuilder, *read: Value) -> Value:
            found = [s.cast(v, "int32") if dtype == "uint8" else s.cast(v, "int32") & 255 for v in read]
            total = found[0]
            for number, v in enumerate(found[1:], 1):
                total = total | s.binary("shl", v, 8 * number)
            return total ^ _SIGNS if other_sign else total

        p.generic(
            "p" * rank, words, [(source, byte(n)) for n in range(WORD)], [(p.outputs[0], lambda *d: list(d))], word
        )

    return c.g.call("words", [c.value(x)], [(words, "int32")], build)[0]


def without_zero(
    c: OpContext, total: Operand, dtype: str, zero: Operand | None, sums: Array, rows: Sequence[int] = ()
) -> Operand:
    """Subtracts from ``total`` the terms of the zero point of data of ``dtype`` and of the shift to unsigned bytes: the
    zero point times ``sums`` of weights. A zero point for each of several is shaped by ``rows``.
    """
    more = 128 if dtype == "int8" else 0
    if zero is None or isinstance(zero, np.ndarray):
        known = (np.zeros((), np.int64) if zero is None else zero.astype(np.int64)) + more
        known = known.reshape(() if known.size == 1 else tuple(rows))
        part = (known * sums.astype(np.int64)).astype(np.int32)
        return c.elementwise("less", [total, part], lambda s, v, z: v - z) if part.any() else total
    shaped = c.cast(c.reshape(zero, () if c.shape(zero) in ((), (1,)) else rows), "int32")
    return c.elementwise("less", [total, shaped, sums.astype(np.int32)], lambda s, v, z, w: v - (z + more) * w)
