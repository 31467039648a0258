"""The memrefs of lowered functions: one dimension, addressed by element."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from landbridge.errors import CodegenError
from landbridge.ir.types import element_count, shape_of
from landbridge.passes.lower.rows import in_rows


def flat_type(buffer: SSAValue) -> MemRefType[Any]:
    """The type of ``buffer``, a memref, with its elements one after another; raises CodegenError for one in rows."""
    ty = buffer.type
    assert isinstance(ty, MemRefType)
    if in_rows(ty):
        raise CodegenError(f"{ty}: kernels of this target reach flat memory only; place the tensor in a flat scope")
    return MemRefType(ty.element_type, [element_count(shape_of(ty))], memory_space=ty.memory_space)
