"""Rows: how a Storage in a scope of more than one dimension counts its bytes, and where each is.

Byte ``row * stride + c`` of such a Storage is byte ``c`` of a row. A pitch of the device is the stride, and the Storage
counts real bytes. The rows of a table lie anywhere: they are counted with a gap between them, so that no run of bytes
leads from one into the next, and nothing that looks for dense memory takes them for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from landbridge.device.protocols import HostMemory
from landbridge.device.space import NdSpace, Region, Space
from landbridge.dtypes import dtype as dtype_facts
from landbridge.errors import DeviceError, HostViewError, InputError
from landbridge.physical_shape import row_bytes

if TYPE_CHECKING:
    from landbridge.memory.storage import Storage

#: Counted between the rows of a table; their strides stay multiples of every element.
_GAP = 16


def check_space(space: Space, physical_shape: Sequence[int], dtype: str) -> NdSpace:
    """``space`` as a device gave it for ``physical_shape``; raises DeviceError where it cannot be that."""
    wanted = row_bytes(physical_shape, dtype)
    if isinstance(space, NdSpace) and tuple(space.physical_shape) == tuple(physical_shape):
        if space.rows is None:
            pitch = space.row_pitch
            good = pitch is not None and pitch >= space.row_bytes and pitch % dtype_facts(dtype).itemsize == 0
        else:
            good = space.row_pitch is None and len(space.rows) == physical_shape[0]
        if good and space.row_bytes >= wanted:
            return space
    raise DeviceError(
        f"{space.device} {space.scope}: asked for {dtype}{list(physical_shape)}, alloc_data_space_nd returned {space}; "
        f"it must be an NdSpace of that shape whose rows have at least {wanted} bytes, with either a row_pitch that is "
        "a multiple of the element or one handle for each row"
    )


def lies_in_a_table(space: Space) -> bool:
    """Whether the rows of ``space`` lie anywhere, so that no address and strides describe them."""
    return isinstance(space, NdSpace) and space.rows is not None


def stride_of(space: NdSpace) -> int:
    """Bytes from one row to the next, as a Storage counts them."""
    if space.row_pitch is not None:
        return space.row_pitch
    return -(-space.row_bytes // _GAP) * _GAP + _GAP


def span_of(space: NdSpace) -> int:
    """Bytes of a Storage over ``space``, as it counts them."""
    rows = space.physical_shape[0]
    return (rows - 1) * stride_of(space) + space.row_bytes if rows else 0


def held_bytes(storage: Storage) -> int:
    """Bytes that ``storage`` holds: of a table, those of its rows, without what is counted between them."""
    space = storage.live_region.space
    if isinstance(space, NdSpace) and space.rows is not None:
        return space.physical_shape[0] * space.row_bytes
    return storage.nbytes


def region_at(storage: Storage, offset: int) -> Region:
    """Where byte ``offset`` of ``storage`` is."""
    region = storage.live_region
    space = region.space
    if isinstance(space, NdSpace) and space.rows is not None:
        row, byte = divmod(offset, stride_of(space))
        return Region(space.row(row).space, byte)
    return Region(space, region.byte_offset + offset)


def row_address(storage: Storage, row: int) -> int:
    """The host address of row ``row``; raises HostViewError where the host cannot address it."""
    space = storage.live_region.space
    host = space.device.capability(HostMemory)
    if storage.kind.host_access == "none" or host is None or not isinstance(space, NdSpace):
        raise HostViewError(
            f"the host cannot address rows of scope {storage.kind.scope!r} of {space.device}; copy the tensor to the "
            "host with t.to_device('cpu')"
        )
    region = space.row(row)
    return host.host_pointer(region.space) + region.byte_offset


def check_in_rows(
    storage: Storage,
    dtype: str,
    shape: Sequence[int],
    strides: Sequence[int],
    byte_offset: int,
    axis_separators: Sequence[int],
) -> None:
    """Raise InputError unless every element of the tensor lies in a row of ``storage``, and only the axes before the
    first separator lead from row to row."""
    space = storage.live_region.space
    what = f"a tensor {dtype}{list(shape)} of axis_separators {tuple(axis_separators)} in scope {space.scope!r}"
    if not isinstance(space, NdSpace) or len(axis_separators) != len(space.physical_shape) - 1:
        raise InputError(f"{what}: the scope has {storage.kind.ndim} dimensions; give one separator less")
    if prod(shape) == 0:
        return
    itemsize, stride = dtype_facts(dtype).itemsize, stride_of(space)
    row, byte = divmod(byte_offset, stride)
    multiple = max(itemsize, storage.kind.offset_alignment)
    if byte % multiple:
        raise InputError(f"{what} cannot start at byte {byte} of its rows; give a multiple of {multiple}")
    for axis, (extent, step) in enumerate(zip(shape, strides, strict=True)):
        reach = (extent - 1) * step * itemsize
        if reach < 0 or (axis < axis_separators[0] and reach % stride):
            raise InputError(f"{what} has strides {tuple(strides)}, which do not lead from row to row")
        if axis < axis_separators[0]:
            row += reach // stride
        else:
            byte += reach
    if byte_offset < 0 or byte + itemsize > space.row_bytes or row >= space.physical_shape[0]:
        raise InputError(
            f"{what} reaches byte {byte + itemsize} of row {row}; the space has {space.physical_shape[0]} rows of "
            f"{space.row_bytes} bytes"
        )
