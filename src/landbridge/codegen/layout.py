"""The memory layout of the elements of a static memref."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, NoneAttr, StridedLayoutAttr
from xdsl.ir import Attribute

from landbridge.errors import CodegenError
from landbridge.ir.types import SpaceAttr
from landbridge.sizes.size import Extent, Size


def strides_and_offset(memref: MemRefType[Attribute]) -> tuple[tuple[int, ...], int]:
    """Returns element strides and element offset of a static memref type.

    Raises CodegenError when a dimension, a stride or the offset is dynamic or the layout is neither identity
    nor strided.
    """
    shape = memref.get_shape()
    if any(isinstance(d, int) and d < 0 for d in shape):
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


def span(memref: MemRefType[Attribute]) -> int:
    """Returns the number of elements from the first to the last that a memref can address; 0 where there are none."""
    strides, offset = strides_and_offset(memref)
    shape = memref.get_shape()
    if 0 in shape or any(s < 0 for s in strides):
        return 0
    return 1 + offset + sum((d - 1) * s for d, s in zip(shape, strides, strict=True))


def is_image(memref: MemRefType[Attribute]) -> bool:
    """Returns whether an operand of a grid is passed as an image: a memref of rows, pixels and lanes in an n-D
    scope.
    """
    space = memref.memory_space
    return isinstance(space, SpaceAttr) and len(space.separators) == len(memref.get_shape()) - 1 == 2


def is_row_table(memref: MemRefType[Attribute]) -> bool:
    """Returns whether an operand is passed by its row table (``landbridge.executable.abi``): a memref of rows and
    columns.

    Raises CodegenError for one in an n-D scope of another form.
    """
    if not isinstance(memref.memory_space, SpaceAttr):
        return False
    shape = memref.get_shape()
    if len(shape) != 2 or not all(map(_is_extent, shape)) or not isinstance(memref.layout, NoneAttr):
        raise CodegenError(f"{memref}: an operand in an n-D scope must be static rows of columns; lower it first")
    return True


def _is_extent(extent: Extent) -> bool:
    return isinstance(extent, Size) or extent >= 0


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)
