"""Quantization, and integer products of quantized tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.ir.conversions import converted
from landbridge.ir.dequantized import Dequantized
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.scalar_dtypes import is_float
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import Handler, kernel
from landbridge.ops.accuracy import EXACT, Accuracy, accuracy
from landbridge.ops.byte_products import (
    BYTES,
    byte_convolution,
    byte_convolution_of_two,
    byte_matmul,
    byte_matmul_of_runs,
    centered_bytes,
)
from landbridge.ops.comparison import saturate
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.convolution import CONVOLUTION, FITTING, convolve
from landbridge.ops.legal import Condition, at_least, between
from landbridge.ops.matmul import matmul
from landbridge.ops.rules import rules
from landbridge.ops.windows import windows


def _per_axis(operand: str) -> Callable[[Handler], Handler]:
    """Returns the rules of ``x`` with the scale and zero point of ``operand``: one, one for each element of ``axis``,
    or one for each block.
    """
    scale, zero = f"{operand}_scale", f"{operand}_zero_point"
    blocks = "tuple(-(-e // block_size) if a == axis % len(S) else e for a, e in enumerate(S))"
    return rules(
        "x: *S",
        f"{scale}: ...",
        f"{zero}?: ...",
        attributes={
            "axis": between("-max(len(S), 2)", "max(len(S), 2) - 1", default=1),
            "block_size": at_least(0, default=0),
        },
        where=(
            Condition(
                f"{zero} == {scale} or {zero} in ((), (1,)) and {scale} in ((), (1,))",
                f"{zero} has the shape of {scale}",
            ),
            Condition(
                f"block_size or {scale} in ((), (1,)) or len(S) > 0 and {scale} == (S[axis if len(S) > 1 else 0],)",
                f"{scale} is one value, or one for each element of x's axis",
            ),
            Condition(
                f"block_size == 0 or {scale} in ((), (1,)) or len(S) > 0 and {scale} == {blocks}",
                f"{scale} is one value, or has x's shape with one for each block_size along axis",
            ),
        ),
    )


def _parameter(c: OpContext, v: Operand, x: Operand, axis: int, block: int) -> Operand:
    """Returns a scale or zero point shaped to broadcast against ``x``: one, one an axis element, or one a block."""
    shape = c.shape(x)
    if block:
        if not isinstance(v, np.ndarray):
            raise c.unsupported("blocked scales must be constants")
        return np.repeat(v, block, axis)[tuple(slice(e) for e in shape)]
    if c.rank(v) == 0 or c.shape(v) == (1,):
        return c.reshape(v, ())
    return c.reshape(v, [shape[axis] if a == axis else 1 for a in range(len(shape))])


def quantize(c: OpContext, x: Operand, scale: Operand, zero: Operand | None, dtype: str) -> Operand:
    """Computes ``saturate(round(x / scale) + zero)``; parameters broadcast."""
    operands = [x, scale] if zero is None else [x, scale, zero]

    def body(s: ScalarBuilder, v: Value, k: Value, z: Value | None = None) -> Value:
        rounded = s.math("round_even", s.cast(v, "float32") / s.cast(k, "float32"))
        return saturate(s, rounded if z is None else rounded + s.cast(z, "float32"), dtype)

    return c.elementwise("quantize", operands, body, dtype)


@_per_axis("y")
@kernel("", "QuantizeLinear")
@accuracy(EXACT)
def quantize_linear(c: OpContext, x: Operand, scale: Operand, zero: Operand | None = None) -> Operand:
    """Quantizes per tensor, per axis or per block."""
    axis, block = c.axis(c.attribute("axis", 1), max(c.rank(x), 2)), c.attribute("block_size", 0)
    dtype = c.attribute("output_dtype") or ("uint8" if zero is None else c.dtype(zero))
    if is_float(dtype):
        return _as_float8(c, x, _parameter(c, scale, x, axis, block), dtype)
    shaped = None if zero is None else _parameter(c, zero, x, axis, block)
    return quantize(c, x, _parameter(c, scale, x, axis, block), shaped, dtype)


def _as_float8(c: OpContext, x: Operand, scale: Operand, dtype: str) -> Operand:
    """Constants divided by their scale, as floats of eight bits; the zero point of these is 0."""
    if not (isinstance(x, np.ndarray) and isinstance(scale, np.ndarray)):
        raise c.unsupported(f"quantizing to {dtype} when the model runs cannot be compiled; to integers can")
    return converted(
        x.astype(np.float32) / scale.astype(np.float32), numpy_dtype(dtype), saturate=bool(c.attribute("saturate", 1))
    )


@_per_axis("x")
@kernel("", "DequantizeLinear")
@accuracy(ulp=1.5, note="of int32; of fewer bits 0.5")
def dequantize_linear(c: OpContext, x: Operand, scale: Operand, zero: Operand | None = None) -> Operand:
    """Computes ``(x - zero) * scale``."""
    axis, block = c.axis(c.attribute("axis", 1), max(c.rank(x), 2)), c.attribute("block_size", 0)
    dtype = c.attribute("output_dtype") or c.dtype(scale)
    if isinstance(x, np.ndarray) and is_float(c.dtype(x)):  # of eight bits, which have no zero point but 0
        return c.cast(
            c.elementwise(
                "scale",
                [c.cast(x, "float32"), c.cast(_parameter(c, scale, x, axis, block), "float32")],
                lambda s, v, k: v * k,
            ),
            dtype,
        )
    operands = [x, _parameter(c, scale, x, axis, block)]
    if zero is not None:
        operands.append(_parameter(c, zero, x, axis, block))

    def body(s: ScalarBuilder, v: Value, k: Value, z: Value | None = None) -> Value:
        centered = s.cast(v, "int32") if z is None else s.cast(v, "int32") - s.cast(z, "int32")
        return s.cast(s.cast(centered, "float32") * s.cast(k, "float32"), dtype)  # float16 ends at 65504

    result = c.elementwise("dequantize", operands, body, dtype)
    if not block:
        note_dequantized(c.g, result, x, scale, zero, axis)
    return result


def note_dequantized(
    g: GraphBuilder, result: Operand, x: Operand, scale: Operand, zero: Operand | None, axis: int
) -> None:
    """Records the integers, scale and zero point that ``result`` was dequantized from, where the latter are
    constants.
    """
    if isinstance(scale, np.ndarray) and (zero is None or isinstance(zero, np.ndarray)):
        g.dequantized.add(Dequantized(result, x, scale, zero, axis))


def _centered(c: OpContext, x: Operand, zero: Operand | None, column: Sequence[int]) -> Operand:
    """Computes ``x - zero`` as int32; a zero point an element is shaped by ``column``."""
    if isinstance(x, np.ndarray) and isinstance(zero, np.ndarray):
        return x.astype(np.int32) - zero.astype(np.int32).reshape(() if zero.size == 1 else tuple(column))
    wide = c.cast(x, "int32")
    if zero is None or (isinstance(zero, np.ndarray) and not zero.any()):
        return wide
    shaped = c.reshape(zero, ()) if c.shape(zero) in ((), (1,)) else c.reshape(zero, column)
    return c.elementwise("center", [wide, c.cast(shaped, "int32")], lambda s, v, z: v - z)


def _is_byte_product(c: OpContext, a: Operand, b: Operand) -> bool:
    """Returns whether ``a @ b`` is a product of byte matrices, or of equally many."""
    lead, lead_b = c.shape(a)[:-2], c.shape(b)[:-2]
    matrices = c.rank(a) > 1 and c.rank(b) > 1 and (not lead_b or lead == lead_b)
    return matrices and c.dtype(a) in BYTES and c.dtype(b) in BYTES


@rules(
    "A: _ ...",
    "B: _ ...",
    "a_zero_point?: () | 1 | R",
    "b_zero_point?: () | 1 | K",
    where=(
        Condition(
            "len(a_zero_point) == 0 or a_zero_point == (1,) or len(A) > 1 and a_zero_point == A[-2:-1]",
            "a_zero_point is one value, or one for each row of A",
        ),
        Condition(
            "len(b_zero_point) == 0 or b_zero_point == (1,) or len(B) > 1 and b_zero_point == B[-1:]",
            "b_zero_point is one value, or one for each column of B",
        ),
    ),
)
@kernel("", "MatMulInteger")
@accuracy(EXACT)
def matmul_integer(
    c: OpContext, a: Operand, b: Operand, a_zero: Operand | None = None, b_zero: Operand | None = None
) -> Operand:
    """Computes the int32 product of centered integers."""
    weights = centered_bytes(b, b_zero, c.shape(b)[-1:])
    if weights is not None and weights.ndim == 2 and c.rank(a) > 0 and c.dtype(a) in BYTES:
        return byte_matmul(c, a, a_zero, weights)
    if _is_byte_product(c, a, b):
        return byte_matmul_of_runs(c, a, a_zero, b, b_zero)
    rows = [*c.shape(a_zero), 1] if a_zero is not None else []
    columns = list(c.shape(b_zero)) if b_zero is not None else []
    product: Operand = matmul(c, _centered(c, a, a_zero, rows), _centered(c, b, b_zero, columns))
    return product


@rules(
    "a: _ ...",
    "a_scale: () | 1",
    "a_zero_point: () | 1",
    "b: _ ...",
    "b_scale: () | 1 | K",
    "b_zero_point: () | 1 | K",
    "y_scale: () | 1",
    "y_zero_point: () | 1",
    where=("len(b) > 1 and K == b[-1]",),
)
@kernel("", "QLinearMatMul")
@accuracy(Accuracy(0.0, note="the integer product is; its rescaling in f32 may round a tie the other way"))
def qlinear_matmul(
    c: OpContext,
    a: Operand,
    a_scale: Operand,
    a_zero: Operand,
    b: Operand,
    b_scale: Operand,
    b_zero: Operand,
    y_scale: Operand,
    y_zero: Operand,
) -> Operand:
    """Computes the product of quantized matrices, quantized."""
    product = matmul_integer(c, a, b, a_zero, b_zero)
    return _requantize(c, product, a_scale, b_scale, y_scale, y_zero, -1)


def _requantize(c: OpContext, total: Operand, a: Operand, b: Operand, y: Operand, zero: Operand, axis: int) -> Operand:
    """Converts int32 totals with scales a and b (b perhaps for each element of ``axis``) to the scale and zero point of
    y.
    """
    rank = c.rank(total)
    axis %= rank

    def shaped(v: Operand) -> Operand:
        if c.shape(v) in ((), (1,)):
            return c.reshape(v, ())
        count = c.shape(v)[0]
        return c.reshape(v, [count if i == axis else 1 for i in range(rank)])

    def body(s: ScalarBuilder, v: Value, p: Value, q: Value, k: Value) -> Value:
        return s.cast(v, "float32") * s.cast(p, "float32") * s.cast(q, "float32") / s.cast(k, "float32")

    scaled = c.elementwise("rescale", [total, shaped(a), shaped(b), shaped(y)], body, "float32")
    return quantize(c, scaled, np.ones((), np.float32), shaped(zero), c.dtype(zero))


@rules(
    "x: N C *D",
    "w: M K *k",
    "x_zero_point?: () | 1",
    "w_zero_point?: () | 1 | M",
    attributes=CONVOLUTION,
    where=FITTING,
)
@kernel("", "ConvInteger")
@accuracy(EXACT)
def conv_integer(
    c: OpContext, x: Operand, w: Operand, x_zero: Operand | None = None, w_zero: Operand | None = None
) -> Operand:
    """Computes the int32 convolution of centered integers."""
    shape = windows(c, c.shape(x)[2:], c.ints("kernel_shape") or c.shape(w)[2:])
    column = [c.shape(w)[0]] + [1] * (c.rank(w) - 1)
    group = c.attribute("group", 1)
    weights = centered_bytes(w, w_zero, column)
    total: Operand | None = None
    are_bytes = c.dtype(x) in BYTES and c.dtype(w) in BYTES
    if weights is not None and are_bytes:
        total = byte_convolution(c, x, x_zero, weights, shape, group)
    elif group == 1 and are_bytes and isinstance(w, np.ndarray) and isinstance(w_zero, np.ndarray):
        total = byte_convolution_of_two(c, x, x_zero, w, w_zero, shape)
    if total is not None:
        return total
    return convolve(c, _centered(c, x, x_zero, []), _centered(c, w, w_zero, column), shape, group)


@rules(
    "x: N C *D",
    "x_scale: () | 1",
    "x_zero_point: () | 1",
    "w: M K *k",
    "w_scale: () | 1 | M",
    "w_zero_point: () | 1 | M",
    "y_scale: () | 1",
    "y_zero_point: () | 1",
    "B?: M",
    attributes=CONVOLUTION,
    where=FITTING,
)
@kernel("", "QLinearConv")
@accuracy(Accuracy(0.0, note="the integer sum is; its rescaling in f32 may round a tie the other way"))
def qlinear_conv(
    c: OpContext,
    x: Operand,
    x_scale: Operand,
    x_zero: Operand,
    w: Operand,
    w_scale: Operand,
    w_zero: Operand,
    y_scale: Operand,
    y_zero: Operand,
    bias: Operand | None = None,
) -> Operand:
    """Computes the convolution of quantized tensors, quantized."""
    total = conv_integer(c, x, w, x_zero, w_zero)
    if bias is not None:
        column = c.reshape(bias, (c.shape(bias)[0],) + (1,) * (c.rank(total) - 2))
        total = c.elementwise("add", [total, column], lambda s, v, b: v + b)
    return _requantize(c, total, x_scale, w_scale, y_scale, y_zero, 1)
