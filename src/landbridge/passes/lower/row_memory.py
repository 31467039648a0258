"""Operands in rows: two indices where flat memory has one.

While a nest is scheduled, an access has one linear index whatever it addresses. Memory in rows is counted as though its
rows began ``PITCH`` elements apart, further than any row is long: loops then join, run along lanes and are bounded by
the same rules as in flat memory, and none is ever taken to lead from the end of one row to the next. When the access is
emitted, ``split`` takes the row and the column apart again.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IntAttr, MemRefType
from xdsl.ir import Attribute, SSAValue

from landbridge.errors import CodegenError
from landbridge.ir.types import SpaceAttr, element_count, extents_attr, separators_of, shape_of
from landbridge.passes.lower.access import Linear
from landbridge.physical_shape import physical_shape, row_strides
from landbridge.shape import row_major

#: Elements from row to row, as linear indices count. It is no distance in memory.
PITCH = 1 << 40


def in_rows(ty: Attribute) -> bool:
    """Whether a memref lies in rows."""
    return bool(separators_of(ty))


def index_strides(ty: Attribute) -> tuple[int, ...]:
    """What one step along each axis of a dense memref adds to a linear index."""
    shape, separators = shape_of(ty), separators_of(ty)
    return row_strides(shape, separators, PITCH) if separators else row_major(shape)


def split(x: Linear) -> tuple[Linear, Linear]:
    """The row and the column of a linear index into memory in rows."""
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
    """The type of a lowered function's operand, a memref: its elements by number, or by row and column."""
    separators = separators_of(ty)
    assert isinstance(ty, MemRefType)
    if not separators:
        return MemRefType(ty.element_type, extents_attr([element_count(shape_of(ty))]), memory_space=ty.memory_space)
    assert isinstance(ty.memory_space, SpaceAttr)
    rows, *columns = physical_shape(shape_of(ty), separators)
    space = SpaceAttr(ty.memory_space.scope, ArrayAttr([IntAttr(1)]))
    return MemRefType(ty.element_type, [rows, element_count(columns)], memory_space=space)


def flat_type(buffer: SSAValue) -> MemRefType[Any]:
    """The type of ``buffer``, a memref, with its elements one after another; raises CodegenError for one in rows."""
    ty = buffer.type
    if in_rows(ty):
        raise CodegenError(f"{ty}: kernels of this target reach flat memory only; place the tensor in a flat scope")
    return lowered_type(ty)


def _row(number: int) -> int:
    """Of rows and a few columns, which may be negative, the rows."""
    return (number + PITCH // 2) // PITCH
