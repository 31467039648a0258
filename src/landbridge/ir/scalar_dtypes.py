"""Facts about scalar dtypes of the IR by name: types, widths, accumulators, and representable ranges."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute

from landbridge.dtypes import numpy_dtype
from landbridge.ir.types import compute_type, element_type


def arith_type(dtype: str) -> Attribute:
    """Returns the arith type that values of a dtype are computed in."""
    return IndexType() if dtype == "index" else compute_type(element_type(dtype))


def is_float(dtype: str) -> bool:
    """Returns whether ``dtype`` is a floating-point dtype."""
    return dtype.startswith(("float", "bfloat"))


def accumulator(dtype: str) -> str:
    """Returns the dtype that sums and other reductions of ``dtype`` accumulate in.

    It is float32 for float16 and bfloat16, whose own sums stop growing after a few hundred terms; else ``dtype``
    itself.
    """
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def meeting(dtype: str, dtypes: Iterable[str]) -> str:
    """Returns the dtype in which a body sees an operand of ``dtype``, given the ``dtypes`` of all operands.

    float16 and bfloat16 operands become float32 if another operand is float32.
    """
    return accumulator(dtype) if "float32" in dtypes else dtype


def bits_of(dtype: str) -> int:
    """Returns the width of a scalar of ``dtype``: 64 for an index, 1 for a bool."""
    if dtype == "index":
        return 64
    if dtype == "bool":
        return 1
    return int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz"))


def in_range(value: float, dtype: str) -> float:
    """Returns ``value``, or an infinity if it is out of range of a float dtype."""
    with np.errstate(over="ignore"):
        rounded = float(np.asarray(value, np.float64).astype(numpy_dtype(dtype)))
    return rounded if np.isinf(rounded) else float(value)


def saturation(dtype: str) -> float:
    """Returns an x from which ``1 + exp(-x)`` is 1 in ``dtype``, while ``exp(2 * x)`` is finite.

    16-bit floats are assumed to be computed in f32, which ``exp(2 * x)`` needs.
    """
    return {"float64": 40.0, "float16": 11.0}.get(dtype, 20.0)


def float_limits(dtype: str) -> tuple[float, float]:
    """Returns the lowest and highest values of a dtype, the identities of max and min."""
    if is_float(dtype):
        return -math.inf, math.inf
    if dtype == "bool":
        return 0, 1
    bits = bits_of(dtype)
    if dtype.startswith("uint"):
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
