"""Operands in rows: memory with two indices, where flat memory has one.

While a nest is scheduled, every access has one linear index. For memory in rows, the index counts as if rows began
``PITCH`` elements apart, which is more than any row has. Therefore loops are joined, vectorized and bounded by the same
rules as in flat memory, and no access continues from the end of one row into the next. When the access is emitted,
``split`` separates row and column again.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IntAttr, MemRefType
from xdsl.ir import Attribute, SSAValue

from landbridge.errors import CodegenError
from landbridge.ir.types import SpaceAttr, element_count, extents_attr, separators_of, shape_of
from landbridge.passes.lower.access import Linear
from landbridge.shapes.physical import physical_shape, row_strides
from landbridge.shapes.strides import row_major

#: The distance of rows in linear indices. It is not a distance in memory.
PITCH = 1 << 40


def in_rows(ty: Attribute) -> bool:
    """Returns whether a memref lies in rows."""
    return bool(separators_of(ty))


def index_strides(ty: Attribute) -> tuple[int, ...]:
    """Returns, for each axis of a dense memref, how much one step adds to a linear index."""
    shape, separators = shape_of(ty), separators_of(ty)
    return row_strides(shape, separators, PITCH) if separators else row_major(shape)


def split(x: Linear) -> tuple[Linear, Linear]:
    """Returns the row and the column of a linear index into memory in rows."""
    rows = {d: _row(c) for d, c in x.coeffs.items()}
    columns = {d: c - rows[d] * PITCH for d, c in x.coeffs.items()}
    rest = [(_row(stride), stride - _row(stride) * PITCH, e) for stride, e in x.rest]
    return (
        Linear(_row(x.const), {d: c for d, c in rows.items() if c}, tuple((row, e) for row, _, e in rest if row)),
        Linear(
            x.const - _row(x.const) * PITCH,
            {d: c for d, c in columns.items() if c},
            tuple((column, e) for _, column, e in rest if column),
        ),
    )


def lowered_type(ty: Attribute) -> MemRefType[Any]:
    """Returns the type of a memref as an operand of a lowered function.

    Flat memory has one axis of elements. Memory in rows has two: rows, and elements of a row.
    """
    separators = separators_of(ty)
    assert isinstance(ty, MemRefType)
    if not separators:
        return MemRefType(ty.element_type, extents_attr([element_count(shape_of(ty))]), memory_space=ty.memory_space)
    assert isinstance(ty.memory_space, SpaceAttr)
    rows, *columns = physical_shape(shape_of(ty), separators)
    space = SpaceAttr(ty.memory_space.scope, ArrayAttr([IntAttr(1)]))
    return MemRefType(ty.element_type, extents_attr([rows, element_count(columns)]), memory_space=space)


def flat_type(buffer: SSAValue) -> MemRefType[Any]:
    """Returns the type of the memref ``buffer`` with one axis of elements; raises CodegenError if it lies in rows."""
    ty = buffer.type
    if in_rows(ty):
        raise CodegenError(f"{ty}: kernels of this target reach flat memory only; place the tensor in a flat scope")
    return lowered_type(ty)


def _row(number: int) -> int:
    """Returns the row of an offset in linear indices, where rows are ``PITCH`` elements apart.

    Rounds to the nearest row: the column part of a coefficient may be negative, and is less than half of ``PITCH``.
    """
    return (number + PITCH // 2) // PITCH
