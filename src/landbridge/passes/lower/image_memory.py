"""Operands in images: rows of pixels, which are read and written as a whole.

An image is a memref of rows, pixels and lanes. ``vector.load`` and ``vector.store`` at lane 0 access one pixel,
``memref.load`` reads one lane of it. No operation stores one lane, unless a pixel has only one. The scheduler treats an
image as any memory in rows (``row_memory``), whose columns count lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IntAttr, MemRefType
from xdsl.ir import Attribute, SSAValue

from landbridge.ir.types import SpaceAttr, extents_attr, separators_of, shape_of
from landbridge.passes.lower.access import Linear
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.row_memory import flat_type
from landbridge.records import record
from landbridge.shapes.physical import physical_shape

_SEPARATORS = 2


def is_image(ty: Attribute) -> bool:
    """Returns whether the memref type ``ty``, before or after lowering, is an image: rows, pixels and lanes."""
    return len(separators_of(ty)) == _SEPARATORS


def grid_type(buffer: SSAValue) -> MemRefType[Any]:
    """Returns the type that the memref ``buffer`` has as an operand of a kernel on a grid.

    An image has the axes row, pixel and lane. Any other memory has one axis of elements; raises CodegenError if it lies
    in rows.
    """
    ty = buffer.type
    if not is_image(ty):
        return flat_type(buffer)
    assert isinstance(ty, MemRefType) and isinstance(ty.memory_space, SpaceAttr)
    space = SpaceAttr(ty.memory_space.scope, ArrayAttr([IntAttr(1), IntAttr(2)]))
    extents = extents_attr(physical_shape(shape_of(ty), separators_of(ty)))
    return MemRefType(ty.element_type, extents, memory_space=space)


@record(frozen=True)
class PixelLocation:
    """The location of an element in its row: the pixel, an index over the loops, and the lane in the pixel."""

    pixel: Linear
    lane: int


def pixel_location(column: Linear, lanes: int, dim: int | None, at: int) -> PixelLocation | None:
    """Returns the pixel and the lane of ``column`` if the index of loop ``dim`` (if not None) is ``at``.

    Returns None if the lane is known only at run time.
    """
    fixed = column.coeff(dim) * at if dim is not None else 0
    coeffs = {d: c for d, c in column.coeffs.items() if d != dim}
    hidden = dim is not None and column.nonlinear_in(dim)
    steps = (*coeffs.values(), *(stride for stride, _ in column.rest))
    if hidden or not all(step % lanes == 0 for step in steps):
        return None
    pixel, lane = divmod(column.const + fixed, lanes)
    rest = tuple((stride // lanes, e) for stride, e in column.rest)
    return PixelLocation(Linear(pixel, {d: c // lanes for d, c in coeffs.items()}, rest), lane)


def lane_at(code: Code, image: SSAValue, row: Index, column: Index, element: Attribute) -> SSAValue:
    """Emit a load of one element of ``image`` and return it; ``column`` counts lanes and is known only at run time."""
    lanes = shape_of(image.type)[2]
    return code.load(image, (row, code.quotient(column, lanes), code.remainder(column, lanes)), element)


def copy_pixel(code: Code, image: SSAValue, row: Index, pixel: Index, lane: Callable[[int], SSAValue]) -> None:
    """Emit a store of one whole pixel; ``lane(n)`` returns the value of its lane ``n``."""
    lanes = shape_of(image.type)[2]
    values = [lane(n) for n in range(lanes)]
    if lanes == 1:
        code.store(values[0], image, (row, pixel, 0))
    else:
        code.store_vector(code.pack(values), image, (row, pixel, 0), lanes, 0)
