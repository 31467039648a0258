"""Rows: how a Storage in a scope of more than one dimension counts its bytes, and where each byte is.

Byte ``row * stride + c`` of such a Storage is byte ``c`` of a row. Where the device has a pitch, the stride is the
pitch and the Storage counts real bytes. The rows of a table lie anywhere: they are counted with a gap between them, so
that no run of bytes leads from one row into the next, and no code that looks for dense memory takes them for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from landbridge.device.api import NdSpace, Region, Space
from landbridge.dtypes import dtype as dtype_facts
from landbridge.errors import DeviceError
from landbridge.shapes.physical import row_bytes

#: The gap that is counted between the rows of a table; strides stay multiples of every element size.
_GAP = 16


def check_space(space: Space, physical_shape: Sequence[int], dtype: str) -> NdSpace:
    """Returns ``space``, which a device made for ``physical_shape``; raises DeviceError where it does not fit that."""
    wanted = row_bytes(physical_shape, dtype)
    if _has_types(space) and tuple(space.physical_shape) == tuple(physical_shape):
        if space.rows is None:
            pitch = space.row_pitch
            good = pitch is not None and pitch >= space.row_bytes and pitch % dtype_facts(dtype).itemsize == 0
        else:
            good = space.row_pitch is None and len(space.rows) == physical_shape[0]
        if good and space.row_bytes >= wanted:
            return space
    raise DeviceError(
        f"{space.device} {space.scope}: requested {dtype}{list(physical_shape)}, alloc_data_space_nd returned {space}; "
        f"it must be an NdSpace of that shape whose rows have at least {wanted} bytes, with either a row_pitch that is "
        "a multiple of the element or one handle for each row"
    )


def _has_types(space: Space) -> TypeGuard[NdSpace]:
    """Returns whether the fields that a device gave for the rows are numbers and tuples, as they must be."""
    return (
        isinstance(space, NdSpace)
        and isinstance(space.physical_shape, Sequence)
        and type(space.row_bytes) is int
        and (space.row_pitch is None or type(space.row_pitch) is int)
        and isinstance(space.rows, tuple | None)
    )


def lies_in_a_table(space: Space) -> bool:
    """Returns whether the rows of ``space`` lie anywhere, so that no address and strides describe them."""
    return isinstance(space, NdSpace) and space.rows is not None


def stride_of(space: NdSpace) -> int:
    """Returns the bytes from one row to the next, as a Storage counts them."""
    if space.row_pitch is not None:
        return space.row_pitch
    return -(-space.row_bytes // _GAP) * _GAP + _GAP


def span_of(space: NdSpace) -> int:
    """Returns the bytes of a Storage over ``space``, as it counts them."""
    rows = space.physical_shape[0]
    return (rows - 1) * stride_of(space) + space.row_bytes if rows else 0


def region_at(region: Region, offset: int) -> Region:
    """Returns the region that begins at byte ``offset`` of a Storage over ``region``."""
    space = region.space
    if isinstance(space, NdSpace) and space.rows is not None:
        row, byte = divmod(offset, stride_of(space))
        return Region(space.row(row).space, byte)
    return Region(space, region.byte_offset + offset)
