"""Layouts: where the elements of a tensor may lie in a Storage, in flat memory and in rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from landbridge.device.space import NdSpace
from landbridge.dtypes import dtype as dtype_facts
from landbridge.errors import InputError
from landbridge.memory.rows import stride_of
from landbridge.memory.storage import Storage
from landbridge.shape import reach


def check_layout(
    storage: Storage,
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    byte_offset: int,
    axis_separators: Sequence[int],
) -> None:
    """Raise InputError when an element would lie outside ``storage``, or where its kind allows no tensor."""
    if storage.kind.ndim > 1:
        _check_in_rows(storage, dtype, shape, strides, byte_offset, axis_separators)
        return
    itemsize = dtype_facts(dtype).itemsize
    if byte_offset:
        multiple = max(itemsize, storage.kind.offset_alignment)
        if byte_offset % multiple:
            raise InputError(
                f"a tensor {dtype}{list(shape)} cannot start at byte {byte_offset} of a storage of scope "
                f"{storage.kind.scope!r}; give a multiple of {multiple}"
            )
    start, stop = (byte_offset + end * itemsize for end in reach(shape, strides))
    if start < 0 or stop > storage.nbytes:
        raise InputError(
            f"a tensor {dtype}{list(shape)} with strides {strides} at byte {byte_offset} needs bytes {start} to {stop} "
            f"of a storage of {storage.nbytes}"
        )


def _check_in_rows(
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
