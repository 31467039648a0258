"""Layouts: how much of a Storage a tensor takes and where its elements may lie, in flat memory and in rows."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.device.api import NdSpace
from landbridge.dtypes import dtype as dtype_facts
from landbridge.errors import InputError
from landbridge.memory.allocators.base import NdSize, Size
from landbridge.memory.row_space import stride_of
from landbridge.memory.storage import Storage
from landbridge.shapes.physical import physical_shape, row_strides
from landbridge.shapes.strides import dense_bytes, reach, row_major


def dense_size(shape: tuple[int, ...], dtype: str, axis_separators: tuple[int, ...]) -> Size:
    """Returns the size of an allocation that holds just these elements."""
    if axis_separators:
        return NdSize(physical_shape(shape, axis_separators), dtype)
    return dense_bytes(shape, dtype)


def check_flat(
    storage: Storage, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...] | None, byte_offset: int
) -> None:
    """Raises InputError when an element would lie outside of ``storage``; ``strides`` None is row-major."""
    itemsize = dtype_facts(dtype).itemsize
    if byte_offset:
        multiple = max(itemsize, storage.kind.offset_alignment)
        if byte_offset % multiple:
            raise InputError(
                f"a tensor {dtype}{list(shape)} cannot start at byte {byte_offset} of a storage of scope "
                f"{storage.kind.scope!r}; give a multiple of {multiple}"
            )
    low, high = (0, dense_bytes(shape, dtype)) if strides is None else reach(shape, strides, itemsize)
    if byte_offset + low < 0 or byte_offset + high > storage.nbytes:
        raise InputError(
            f"a tensor {dtype}{list(shape)} with strides {row_major(shape) if strides is None else strides} at byte "
            f"{byte_offset} needs bytes {byte_offset + low} to {byte_offset + high} of a storage of {storage.nbytes}"
        )


def strides_in_rows(
    storage: Storage,
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    byte_offset: int,
    axis_separators: Sequence[int],
) -> tuple[int, ...]:
    """Returns ``strides``, or for None those of elements that are dense in each row of ``storage``.

    Raises InputError unless every element lies in a row, and only the axes before the first separator lead from row to
    row.
    """
    space = storage.live_region.space
    if not isinstance(space, NdSpace):
        raise InputError(f"scope {space.scope!r} of {space.device} is flat and has no rows; give no axis_separators")
    subject = f"a tensor {dtype}{list(shape)} of axis_separators {tuple(axis_separators)} in scope {space.scope!r}"
    if len(axis_separators) != len(space.physical_shape) - 1:
        raise InputError(f"{subject}: the scope has {storage.kind.ndim} dimensions; give one separator less")
    itemsize, stride = dtype_facts(dtype).itemsize, stride_of(space)
    if strides is None:
        strides = row_strides(shape, axis_separators, stride // itemsize)
    if 0 in shape:
        return strides
    row, byte = divmod(byte_offset, stride)
    multiple = max(itemsize, storage.kind.offset_alignment)
    if byte % multiple:
        raise InputError(f"{subject} cannot start at byte {byte} of its rows; give a multiple of {multiple}")
    for axis, (extent, step) in enumerate(zip(shape, strides, strict=True)):
        way = (extent - 1) * step * itemsize
        if way < 0 or (axis < axis_separators[0] and way % stride):
            raise InputError(f"{subject} has strides {strides}, which do not lead from row to row")
        if axis < axis_separators[0]:
            row += way // stride
        else:
            byte += way
    if byte_offset < 0 or byte + itemsize > space.row_bytes or row >= space.physical_shape[0]:
        raise InputError(
            f"{subject} reaches byte {byte + itemsize} of row {row}; the space has {space.physical_shape[0]} rows of "
            f"{space.row_bytes} bytes"
        )
    return strides
