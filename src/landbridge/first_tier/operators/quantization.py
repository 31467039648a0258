"""Translations of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, and which products of bytes are taken."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from landbridge.first_tier.call_builder import ShapedValue
from landbridge.first_tier.not_taken import NotTakenError
from landbridge.first_tier.operators.request import Request, translates


@translates("QuantizeLinear")
def quantize(r: Request) -> Sequence[ShapedValue]:
    """Translates QuantizeLinear of float32."""
    x, scale, zero = r.input(0), r.input(1), r.optional(2)
    dtype = "uint8" if zero is None else zero.dtype
    if (
        x.dtype != "float32"
        or scale.dtype != "float32"
        or dtype not in ("int8", "uint8", "int16", "uint16")
        or r.attribute("block_size", 0)
        or r.attribute("output_dtype", 0)
        or r.attribute("precision", 0)
        or not r.attribute("saturate", 1)
    ):
        raise NotTakenError("QuantizeLinear of other types")
    return r.call("QuantizeLinear", [x, scale, zero], [(x.shape, dtype)], {"axis": _axis(r, x, scale, zero)})


@translates("DequantizeLinear")
def dequantize(r: Request) -> Sequence[ShapedValue]:
    """Translates DequantizeLinear to float32."""
    x, scale, zero = r.input(0), r.input(1), r.optional(2)
    if (
        scale.dtype != "float32"
        or x.dtype not in ("int8", "uint8", "int16", "uint16", "int32")
        or r.attribute("block_size", 0)
        or r.attribute("output_dtype", 0)
    ):
        raise NotTakenError("DequantizeLinear of other types")
    return r.call("DequantizeLinear", [x, scale, zero], [(x.shape, "float32")], {"axis": _axis(r, x, scale, zero)})


@translates("DynamicQuantizeLinear")
def quantize_by_range(r: Request) -> Sequence[ShapedValue]:
    """Translates DynamicQuantizeLinear."""
    x = r.input(0)
    if x.dtype != "float32" or 0 in x.shape:
        raise NotTakenError("DynamicQuantizeLinear of other types")
    return r.call("DynamicQuantizeLinear", [x], [(x.shape, "uint8"), ((), "float32"), ((), "uint8")])


def check_bytes(
    r: Request,
    left: tuple[ShapedValue, ShapedValue | None],
    right: tuple[ShapedValue, ShapedValue | None],
    terms: int,
) -> None:
    """Raises NotTakenError unless both are elements of 8 bits with their zero points, one for all of the ``left``, and
    int32 holds sums of as many products as ``terms``.
    """
    for x, zero in (left, right):
        if x.dtype not in ("int8", "uint8") or (zero is not None and zero.dtype != x.dtype):
            raise NotTakenError(f"{r.node.op_type} of other types")
    zero = left[1]
    if (zero is not None and (prod(zero.shape) != 1 or len(zero.shape) > 1)) or terms * 255 * 255 >= 1 << 31:
        raise NotTakenError(f"{r.node.op_type} of other forms")


def _axis(r: Request, x: ShapedValue, scale: ShapedValue, zero: ShapedValue | None) -> int:
    """Returns the axis of the parameters, 0 where they have one element; raises NotTakenError for other shapes."""
    given = r.attribute("axis", 1)
    if zero is not None and prod(zero.shape) != prod(scale.shape):
        raise NotTakenError("a zero point of another shape than its scale")
    if prod(scale.shape) == 1:
        return 0
    axis = r.axis(given, len(x.shape))
    if scale.shape != (x.shape[axis],):
        raise NotTakenError("a scale for blocks")
    return axis
