"""Sums of products of bytes, four at a time, as ``lb.byte_dot`` multiplies them: words of four bytes along what is
summed, those of data without a sign, those of weights with one.

With zero points ``sum((x - p) * (w - q))`` is wanted. ``w - q`` is a constant that mostly fits a byte; then the sum is
``sum(x * w') - p * sum(w')``, of which the second part is known but for ``p``. All of it wraps as int32 does, so no
order of it gives another result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from landbridge.errors import ShapeError
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import element_count
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.convolution import convolve
from landbridge.ops.matrix_product import matrix_product
from landbridge.ops.windows import Windows
from landbridge.sizes.size import Extent

Array: TypeAlias = np.ndarray[Any, Any]

#: Bytes of a word.
WORD = 4
BYTES = ("uint8", "int8")


def byte_matmul(c: OpContext, a: Operand, a_zero: Operand | None, weights: Array) -> Operand:
    """``(a - a_zero) @ weights`` as int32, of bytes [..., K] and int8 weights [K, N]."""
    *lead, depth = c.shape(a)
    if depth != weights.shape[0]:
        raise ShapeError(
            f"{c.g.node}: {c.op_type} of {c.shape(a)} and {weights.shape}; the inner extents must be equal"
        )
    data = data_words(c, c.reshape(a, (element_count(lead), depth)), 1)
    total = matrix_product(c, data, weight_words(weights, 0), term=_term)
    total = c.reshape(total, (*lead, weights.shape[1]))
    rows = [*c.shape(a_zero), 1] if a_zero is not None else []
    return without_zero(c, total, c.dtype(a), a_zero, weights.sum(0, dtype=np.int32), rows)


def byte_convolution(
    c: OpContext, x: Operand, zero: Operand | None, weights: Array, shape: Windows, group: int
) -> Operand | None:
    """The convolution of ``x - zero``, bytes, with int8 weights as int32; None where the channels of a group fill no
    words, or padding is not known."""
    _, inner, *taps = weights.shape
    known = zero is None or isinstance(zero, np.ndarray)
    if (group > 1 and inner % WORD) or (shape.padded and not known):
        return None
    fill = int(zero.reshape(-1)[0]) if isinstance(zero, np.ndarray) else 0
    none = (0,) * len(taps)
    data = data_words(c, x, 1, (0, 0, *shape.low), (0, 0, *shape.high), fill)
    total = convolve(c, data, weight_words(weights, 1), replace(shape, low=none, high=none), group, _term)
    sums = weights.sum(tuple(range(1, weights.ndim)), dtype=np.int32).reshape(-1, *(1 for _ in taps))
    return without_zero(c, total, c.dtype(x), zero, sums)


def _term(s: ScalarBuilder, total: Value, x: Value, w: Value) -> Value:
    return total + s.byte_dot(x, w)


def centered_bytes(weights: Operand, zero: Operand | None, column: Sequence[int]) -> Array | None:
    """``weights - zero`` as int8; None where they are not constant, or do not fit. A zero point for each of several
    is shaped by ``column``."""
    if not isinstance(weights, np.ndarray) or weights.dtype.name not in BYTES:
        return None
    wide = weights.astype(np.int32)
    if zero is not None:
        if not isinstance(zero, np.ndarray):
            return None
        wide = wide - zero.astype(np.int32).reshape(() if zero.size == 1 else tuple(column))
    fits = wide.size == 0 or (wide.min() >= -128 and wide.max() <= 127)
    return wide.astype(np.int8) if fits else None


def weight_words(weights: Array, axis: int) -> Array:
    """The int8 ``weights`` as int32, each of which holds four along ``axis``; the last is filled up with zeros."""
    missing = -weights.shape[axis] % WORD
    padded = np.pad(weights, [(0, missing if a == axis else 0) for a in range(weights.ndim)])
    last = np.ascontiguousarray(np.moveaxis(padded, axis, -1))
    return np.ascontiguousarray(np.moveaxis(last.view("<i4"), -1, axis))


def data_words(
    c: OpContext, x: Operand, axis: int, low: Sequence[Extent] = (), high: Sequence[Extent] = (), fill: int = 0
) -> SSAValue:
    """The bytes ``x`` as int32, each of which holds four along ``axis`` as numbers without a sign: of int8, 128 more.

    ``low`` and ``high`` are how many of ``fill``, such a number of x's dtype, surround x along each axis. Of
    the last word bytes past the end are unspecified.
    """
    shape, dtype, rank = list(c.shape(x)), c.dtype(x), c.rank(x)
    before, after = list(low or [0] * rank), list(high or [0] * rank)
    after[axis] = -shape[axis] % WORD
    whole = [e + a + b for e, a, b in zip(shape, before, after, strict=True)]
    words = [e // WORD if a == axis else e for a, e in enumerate(whole)]

    def build(p: PrimBuilder) -> None:
        source = p.inputs[0]
        if any(e != 0 for e in (*before, *after)):
            source = p.pad(source, before, after, fill)

        def byte(number: int) -> Any:
            return lambda *d: [i * WORD + number if a == axis else i for a, i in enumerate(d)]

        def word(s: ScalarBuilder, *read: Value) -> Value:
            found = [s.cast(v, "int32") if dtype == "uint8" else s.cast(v, "int32") + 128 for v in read]
            total = found[0]
            for number, v in enumerate(found[1:], 1):
                total = total | s.binary("shl", v, 8 * number)
            return total

        p.generic(
            "p" * rank, words, [(source, byte(n)) for n in range(WORD)], [(p.outputs[0], lambda *d: list(d))], word
        )

    return c.g.call("words", [c.value(x)], [(words, "int32")], build)[0]


def without_zero(
    c: OpContext, total: Operand, dtype: str, zero: Operand | None, sums: Array, rows: Sequence[int] = ()
) -> Operand:
    """``total`` less what the zero point of data of ``dtype``, and that its bytes were taken without a sign, add to it:
    the zero point times ``sums`` of weights. A zero point for each of several is shaped by ``rows``."""
    more = 128 if dtype == "int8" else 0
    if zero is None or isinstance(zero, np.ndarray):
        known = (np.zeros((), np.int64) if zero is None else zero.astype(np.int64)) + more
        known = known.reshape(() if known.size == 1 else tuple(rows))
        part = (known * sums.astype(np.int64)).astype(np.int32)
        return c.elementwise("less", [total, part], lambda s, v, z: v - z) if part.any() else total
    shaped = c.cast(c.reshape(zero, () if c.shape(zero) in ((), (1,)) else rows), "int32")
    return c.elementwise("less", [total, shaped, sums.astype(np.int32)], lambda s, v, z, w: v - (z + more) * w)
