"""The Storage of a new dense tensor."""

from __future__ import annotations

from landbridge.device.device import Device
from landbridge.errors import InputError
from landbridge.memory.allocation import allocate
from landbridge.memory.allocators.base import Allocator, NdSize, Size
from landbridge.memory.storage import Storage
from landbridge.memory_kind import MemoryKind
from landbridge.physical_shape import nd_bytes, physical_shape
from landbridge.shape import dense_bytes


def dense_storage(
    device: Device,
    kind: MemoryKind,
    shape: tuple[int, ...],
    dtype: str,
    axis_separators: tuple[int, ...] = (),
    *,
    alignment: int = 1,
    shared: bool = False,
    allocator: Allocator | None = None,
) -> Storage:
    """A Storage of ``kind`` for just these elements; raises InputError for more than one allocation may have.

    ``allocator`` and ``shared`` as in ``landbridge.memory.allocation.allocate``.
    """
    size: Size
    if axis_separators:
        size = NdSize(physical_shape(shape, axis_separators), dtype)
        nbytes = nd_bytes(kind, size.physical_shape, dtype)
    else:
        size = nbytes = dense_bytes(shape, dtype)
    if kind.max_bytes is not None and nbytes > kind.max_bytes:
        raise InputError(
            f"{dtype}{list(shape)} has {nbytes} bytes; one allocation of scope {kind.scope!r} of {device} has at most "
            f"{kind.max_bytes}"
        )
    return allocate(device, size, scope=kind.scope, alignment=alignment, shared=shared, allocator=allocator)
