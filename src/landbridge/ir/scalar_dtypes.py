"""What the IR computes with, by dtype name: types, widths, accumulators, and the numbers a dtype can hold."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute

from landbridge.dtypes import numpy_dtype
from landbridge.ir.types import compute_type, element_type


def arith_type(dtype: str) -> Attribute:
    """The arith type that values of a dtype are computed in."""
    return IndexType() if dtype == "index" else compute_type(element_type(dtype))


def is_float(dtype: str) -> bool:
    """Whether ``dtype`` is a floating-point dtype."""
    return dtype.startswith(("float", "bfloat"))


def accumulator(dtype: str) -> str:
    """The dtype that sums and other reductions of ``dtype`` are kept in.

    float32 for float16 and bfloat16, whose own sums stop growing after a few hundred terms; else ``dtype`` itself.
    """
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def meeting(dtype: str, dtypes: Iterable[str]) -> str:
    """The dtype that a body sees an operand of ``dtype`` in beside those of ``dtypes``: float16 and bfloat16 that meet
    float32 are float32."""
    return accumulator(dtype) if "float32" in dtypes else dtype


def bits_of(dtype: str) -> int:
    """The width of a scalar of ``dtype``: 64 for an index, 1 for a bool."""
    if dtype == "index":
        return 64
    if dtype == "bool":
        return 1
    return int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz"))


def in_range(value: float, dtype: str) -> float:
    """``value``, or an infinity where a float dtype has no number as large."""
    with np.errstate(over="ignore"):
        rounded = float(np.asarray(value, np.float64).astype(numpy_dtype(dtype)))
    return rounded if np.isinf(rounded) else float(value)


def saturation(dtype: str) -> float:
    """An x from which ``1 + exp(-x)`` is 1 in ``dtype``, while ``exp(2 * x)`` is finite; a 16-bit float is taken to
    be computed in f32, which ``exp(2 * x)`` needs."""
    return {"float64": 40.0, "float16": 11.0}.get(dtype, 20.0)


def float_limits(dtype: str) -> tuple[float, float]:
    """Lowest and highest values of a dtype, for identities of max and min."""
    if is_float(dtype):
        return -math.inf, math.inf
    if dtype == "bool":
        return 0, 1
    bits = bits_of(dtype)
    if dtype.startswith("uint"):
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
