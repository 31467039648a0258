"""Computes products and convolutions of dequantized operands as integer ones, scaled.

``DequantizeLinear`` of data with one scale and of constant weights, between which models of a quantizer put their
products, gives ``sum((x - p) * (w - q)) * s * t``: the sum has no error in int32, where one of f32 rounds at each term.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from landbridge.ir.dequantized import Dequantized
from landbridge.ops.byte_products import (
    BYTES,
    byte_convolution,
    byte_matmul,
    centered_bytes,
    single_byte_convolution,
)
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.windows import Windows
from landbridge.targets.grid import grid_limits

Array: TypeAlias = np.ndarray[Any, Any]

#: Kinds of targets whose CPUs multiply several bytes of a word at once, or whose memory is scarce.
_WITH_WORDS = ("llvm", "freestanding")
#: Terms whose sum fits int32 whatever the bytes are.
_MOST_TERMS = (1 << 31) // (255 * 128) - 1


def dequantized_convolution(c: OpContext, x: Operand, w: Operand, shape: Windows, group: int) -> Operand | None:
    """Returns the float32 convolution, computed in integers; None unless ``x`` and ``w`` are dequantized in a form that
    ``_operands`` takes and the channels fill words of bytes.
    """
    found = _operands(c, x, w, 0, math.prod(c.shape(w)[1:]))
    if found is None:
        return None
    data, kernel, weights = found
    total = byte_convolution(c, data.of, data.zero, weights, shape, group)
    if total is None and all(target.kind == "freestanding" for target in c.g.module.targets):
        total = single_byte_convolution(c, data.of, data.zero, weights, shape, group)
    if total is None:
        return None
    return _scaled(c, total, data, kernel, (-1, *(1 for _ in shape.kernel)))


def dequantized_product(c: OpContext, a: Operand, b: Operand, trans_b: bool = False) -> Operand | None:
    """Returns ``a @ b`` as float32, computed in integers: ``a`` of any leading axes, ``b`` a matrix. None unless both
    are dequantized in a form that ``_operands`` takes.
    """
    found = _operands(c, a, b, 0 if trans_b else 1, c.shape(b)[1 if trans_b else 0])
    if found is None:
        return None
    data, panel, weights = found
    total = byte_matmul(c, data.of, data.zero, weights.T if trans_b else weights)
    return _scaled(c, total, data, panel, (-1,))


def _operands(
    c: OpContext, x: Operand, w: Operand, axis: int, terms: int
) -> tuple[Dequantized, Dequantized, Array] | None:
    """Returns the Dequantized of ``x`` and of ``w``, and the weights as int8 without their zero points.

    ``axis`` is the axis of ``w`` along which its scale may vary; that of ``x`` must be one number. ``terms`` is how
    many products are summed, which must fit int32. None where an operand is not dequantized like that, ``w`` is not
    constant, or the targets are not CPUs.
    """
    data, weights = c.g.dequantized.find(x), c.g.dequantized.find(w)
    if data is None or weights is None or c.dtype(x) != "float32" or isinstance(data.of, np.ndarray):
        return None
    if c.dtype(data.of) not in BYTES or data.scale.size != 1 or terms > _MOST_TERMS or not _has_words(c):
        return None
    rank = c.rank(w)
    if weights.scale.size != 1 and weights.axis % rank != axis:
        return None
    column = [-1 if a == axis else 1 for a in range(rank)]
    centered = centered_bytes(weights.of, weights.zero, column)
    return None if centered is None else (data, weights, centered)


def _has_words(c: OpContext) -> bool:
    """Returns whether all targets are CPUs, which multiply several bytes of a word at once; on others floats are
    faster.
    """
    return all(target.kind in _WITH_WORDS and grid_limits(target) is None for target in c.g.module.targets)


def _scaled(c: OpContext, total: Operand, data: Dequantized, weights: Dequantized, column: tuple[int, ...]) -> Operand:
    # A product of arrays without axes would be a Python number, so one operand has an axis.
    scale = data.scale.astype(np.float64).reshape(1) * weights.scale.astype(np.float64)
    scale = scale.astype(np.float32).reshape(() if scale.size == 1 else column)
    return c.elementwise("rescale", [total, scale], lambda s, v, k: s.cast(v, "float32") * k, "float32")
