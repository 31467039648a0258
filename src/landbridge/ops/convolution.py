"""A convolution alone: one PrimFunc "conv" of [pad,] fill and a single generic; the bias is a separate call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from landbridge.ir.prim_builder import Body, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import at_least
from landbridge.ops.matrix_product import multiply_add
from landbridge.ops.windows import WINDOWS, Windows
from landbridge.sizes.size import Extent

#: Rules of convolutions of ``N C *D`` with weights ``M K *k``.
CONVOLUTION = {"group": at_least(1, default=1), **WINDOWS}
FITTING = (
    "len(D) > 0 and len(D) == len(k)",
    "C == K * group",
    "M % group == 0",
    "min(k) > 0",
    "tuple(kernel_shape) == k",
)


def add_bias(c: OpContext, y: Operand, bias: Operand | None, dtype: str) -> Operand:
    """Adds a bias for each channel (axis 1) to ``y``, in ``dtype``."""
    if bias is None:
        return c.cast(y, dtype)
    column = c.reshape(bias, (c.shape(bias)[0],) + (1,) * (c.rank(y) - 2))
    return c.elementwise("add", [y, column], lambda s, v, b: v + b, dtype)


def convolve(
    c: OpContext,
    x: Operand,
    w: Operand,
    shape: Windows,
    group: int,
    term: Body = multiply_add,
    *,
    fill: int = 0,
    dtype: str = "",
) -> Operand:
    """Computes the convolution alone, in ``dtype``, else the accumulator of the dtype of ``x``; 1-D runs as 2-D of
    height 1.

    ``term(s, total, x, w)`` is the total with one more term, that of ``x`` and ``w``. ``fill`` surrounds ``x``.
    """
    if len(shape.kernel) == 1:
        (n, channels, length), (outputs, inner, taps) = c.shape(x), c.shape(w)
        fields = zip((1, 1, 1, 0, 0, 0, 1), _fields(shape), strict=True)
        flat = Windows(*(cast(tuple[int, ...], (first, *rest)) for first, rest in fields))
        y = convolve(
            c,
            c.reshape(x, (n, channels, 1, length)),
            c.reshape(w, (outputs, inner, 1, taps)),
            flat,
            group,
            term,
            fill=fill,
            dtype=dtype,
        )
        return c.reshape(y, (n, outputs, shape.output[0]))
    n, channels = c.shape(x)[:2]
    outputs, inner = c.shape(w)[:2]
    rank = len(shape.kernel)

    def build(p: PrimBuilder) -> None:
        source = p.inputs[0]
        if shape.padded:
            source = p.pad(source, (0, 0, *shape.low), (0, 0, *shape.high), fill)
        weights, target = p.inputs[1], p.outputs[0]

        def taken(out: Sequence[Any], taps: Sequence[Any]) -> list[Any]:
            return [o * s + k * d for o, s, k, d in zip(out, shape.stride, taps, shape.dilation, strict=True)]

        def plain(n: Any, oc: Any, *r: Any) -> tuple[list[Any], list[Any], list[Any]]:
            out, ic, taps = r[:rank], r[rank], r[rank + 1 :]
            return [n, ic, *taken(out, taps)], [oc, ic, *taps], [n, oc, *out]

        def depthwise(n: Any, oc: Any, *r: Any) -> tuple[list[Any], list[Any], list[Any]]:
            out, taps = r[:rank], r[rank:]
            return [n, oc, *taken(out, taps)], [oc, 0, *taps], [n, oc, *out]

        def grouped(n: Any, g: Any, *r: Any) -> tuple[list[Any], list[Any], list[Any]]:
            oc, out, ic, taps = r[0], r[1 : rank + 1], r[rank + 1], r[rank + 2 :]
            whole = g * (outputs // group) + oc
            return [n, g * inner + ic, *taken(out, taps)], [whole, ic, *taps], [n, whole, *out]

        lead: tuple[int, ...] = (n, outputs)
        tail: tuple[int, ...] = (inner, *shape.kernel)
        maps: Callable[..., tuple[list[Any], list[Any], list[Any]]] = plain
        if group > 1 and inner == 1 and outputs == channels:
            maps, tail = depthwise, shape.kernel
        elif group > 1:
            maps, lead = grouped, (n, group, outputs // group)
        p.generic(
            "p" * (len(lead) + rank) + "r" * len(tail),
            (*lead, *shape.output, *tail),
            [(source, lambda *d: maps(*d)[0]), (weights, lambda *d: maps(*d)[1])],
            [(target, lambda *d: maps(*d)[2])],
            term,
            init=0,
        )

    result = ((n, outputs, *shape.output), dtype or accumulator(c.dtype(x)))
    return c.g.call("conv", [c.value(x), c.value(w)], [result], build)[0]


def _fields(shape: Windows) -> tuple[tuple[Extent, ...], ...]:
    return (
        shape.kernel, shape.stride, shape.dilation, shape.low, shape.high, shape.declared_high, shape.output
    )  # fmt: skip
