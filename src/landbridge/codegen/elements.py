"""Elements of values by their names: ``i1 i8 i16 i32 i64 index f16 bf16 f32 f64``."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute

#: Floats that are computed in f32.
NARROW = ("f16", "bf16")
FLOATS = (*NARROW, "f32", "f64")


def element_name(attr: Attribute) -> str:
    """Returns the name of a scalar type, also of an integer of another width; ``""`` for other types."""
    if isinstance(attr, IntegerType):
        return f"i{attr.width.data}"
    return attr.name if isinstance(attr, IndexType | Float16Type | BFloat16Type | Float32Type | Float64Type) else ""


def bits_in_memory(element: str) -> int:
    """Returns the bits that an element takes in memory, where an i1 is a byte."""
    return 64 if element == "index" else -(-int(element.lstrip("bfis")) // 8) * 8


def narrow_bits(value: float | int, element: str) -> int:
    """Returns the bits of ``value`` rounded to a 16-bit float."""
    if element == "f16":
        return int(np.float16(value).view(np.uint16))
    import ml_dtypes

    return int(np.asarray(value, ml_dtypes.bfloat16).view(np.uint16))
