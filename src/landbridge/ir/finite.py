"""Replaces the infinities in constants of kernels by the largest finite numbers, for devices that compute with none.

An infinity in a kernel is a bound that no number passes: the first value of a maximum, or the score of a masked
element. The largest finite number is such a bound for all finite numbers too.
"""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr
from xdsl.ir import Operation

from landbridge.dtypes import numpy_dtype
from landbridge.ir.traversal import all_operations
from landbridge.ir.types import dtype_of


def replace_infinities(function: Operation) -> None:
    """Replace infinite constants in ``function`` by the largest finite numbers of their type and sign."""
    for op in all_operations(function):
        if not isinstance(op, arith.ConstantOp):
            continue
        value = op.value
        if isinstance(value, FloatAttr) and math.isinf(value.value.data):
            largest = largest_finite(dtype_of(value.type))
            op.properties["value"] = FloatAttr(math.copysign(largest, value.value.data), value.type)
        elif isinstance(value, DenseIntOrFPElementsAttr):
            numbers = [float(number) for number in value.get_values()]
            if any(map(math.isinf, numbers)):
                largest = largest_finite(dtype_of(value.get_element_type()))
                finite = [math.copysign(largest, number) if math.isinf(number) else number for number in numbers]
                op.properties["value"] = DenseIntOrFPElementsAttr.from_list(value.type, finite)


def largest_finite(dtype: str) -> float:
    """Returns the largest finite number of float ``dtype``."""
    if dtype == "bfloat16":
        return float(np.ldexp(2 - 2.0**-7, 127))
    return float(np.finfo(numpy_dtype(dtype)).max)
