"""How the elements of a static memref lie in memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, NoneAttr, StridedLayoutAttr
from xdsl.ir import Attribute

from landbridge.errors import CodegenError


def strides_and_offset(memref: MemRefType[Attribute]) -> tuple[tuple[int, ...], int]:
    """Element strides and element offset of a static memref type.

    Raises CodegenError when a dimension, a stride or the offset is dynamic or the layout is neither identity
    nor strided.
    """
    shape = memref.get_shape()
    if any(d < 0 for d in shape):
        raise CodegenError(f"{memref}: a dynamic dimension; kernels are compiled for static shapes")
    layout = memref.layout
    if isinstance(layout, NoneAttr):
        return _row_major(shape), 0
    if not isinstance(layout, StridedLayoutAttr):
        raise CodegenError(f"{memref}: layout {layout}; legal: identity or strided<[...], offset: ...>")
    strides = layout.get_strides()
    offset = layout.get_offset()
    if offset is None or any(s is None for s in strides):
        raise CodegenError(f"{memref}: dynamic strides or offset; kernels are compiled for static layouts")
    return tuple(s for s in strides if s is not None), offset


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)
