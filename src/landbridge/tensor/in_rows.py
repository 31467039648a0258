"""Tensors in scopes of more than one dimension, whose strides lead from row to row, wherever a device put them."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.device.api import NdSpace
from landbridge.device.granted import host_pointer
from landbridge.device.protocols import HostMemory
from landbridge.errors import HostViewError, InputError
from landbridge.memory.row_space import stride_of
from landbridge.memory.storage import Storage
from landbridge.shapes.physical import physical_shape
from landbridge.tensor.tensor import Tensor


def tensor_in_rows(
    storage: Storage, dtype: str, shape: Sequence[int], axis_separators: Sequence[int], row: int = 0, byte: int = 0
) -> Tensor:
    """Returns a Tensor in consecutive rows of ``storage``, from row ``row`` on, at byte ``byte`` of each row.

    Raises InputError where ``storage`` has no rows, too few, or rows that are too short.
    """
    space = storage.live_region.space
    if not isinstance(space, NdSpace):
        raise InputError(f"scope {space.scope!r} of {space.device} is flat and has no rows; give no axis_separators")
    start = row * stride_of(space) + byte
    return Tensor(storage, dtype, shape, None, start, axis_separators=tuple(axis_separators))


def row_table(tensor: Tensor) -> tuple[int, ...]:
    """Returns the host address of each row of ``tensor``, in order, which a kernel of the host takes for it.

    It is empty for a tensor without elements, and valid for as long as the storage lives. Raises HostViewError where
    the host cannot address the rows.
    """
    storage = tensor.storage
    space = storage.live_region.space
    if not isinstance(space, NdSpace):
        raise InputError(f"{tensor!r} is in flat memory and has no rows; its address is data_address")
    first, byte = divmod(tensor.byte_offset, stride_of(space))
    count = physical_shape(tensor.shape, tensor.axis_separators)[0] if tensor.size else 0
    return tuple(_row_address(storage, space, first + row) + byte for row in range(count))


def _row_address(storage: Storage, space: NdSpace, row: int) -> int:
    host = space.device.capability(HostMemory)
    if storage.kind.host_access == "none" or host is None:
        raise HostViewError(
            f"the host cannot address rows of scope {storage.kind.scope!r} of {space.device}; copy the tensor to the "
            "host with t.to_device('cpu')"
        )
    region = space.row(row)
    return host_pointer(host, region.space) + region.byte_offset
