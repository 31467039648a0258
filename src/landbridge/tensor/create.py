"""New tensors: memory of our own, or a dma-buf used in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from landbridge.device.device import Device
from landbridge.device.registry import device as find_device
from landbridge.device.space import DmaBuf
from landbridge.device.stream import current_device
from landbridge.dtypes import dtype as dtype_facts
from landbridge.dtypes import dtype_name
from landbridge.errors import InputError
from landbridge.memory.allocators.base import Allocator, NdSize, Size
from landbridge.memory.storage import allocate, import_memory
from landbridge.memory_kind import HOST_ACCESSES, HostAccess
from landbridge.physical_shape import nd_bytes, physical_shape, separators_for
from landbridge.shape import check_shape, dense_bytes, row_major
from landbridge.tensor.in_rows import tensor_in_rows
from landbridge.tensor.tensor import Tensor


def empty(
    shape: int | Sequence[int],
    *,
    dtype: Any,
    device: Device | str | None = None,
    scope: str = "global",
    alignment: int | None = None,
    host_access: HostAccess | None = None,
    axis_separators: Sequence[int] | None = None,
    allocator: Allocator | None = None,
) -> Tensor:
    """A new dense Tensor whose elements are undefined, in ``scope`` of ``device`` (None: the current one).

    ``alignment``: bytes, a power of two, None for the scope's own. ``host_access``: what the host must be able
    to do with the bytes in place; memory asked for so is made to be shared, which on the host itself means that
    others can map it and that huge pages are rare. ``axis_separators``: in a scope of more than one dimension, the
    axes at which each but the first begins; with ``[2]`` the first two axes count rows and the others lie in one.
    None is an axis for each dimension. ``allocator``: of this scope, None for the process's. Raises InputError for what
    is not legal and OutOfMemoryError.
    """
    name = dtype_facts(dtype).name if type(dtype) is str else dtype_name(dtype)
    extents = check_shape((shape,) if isinstance(shape, int) else shape, name)
    where = current_device() if device is None else find_device(device)
    kind = where.memory_kind(scope)
    if alignment is not None and (type(alignment) is not int or alignment < 1 or alignment & (alignment - 1)):
        raise InputError(f"alignment {alignment!r} is not legal; give a power of two in bytes")
    if host_access is not None:
        if host_access not in HOST_ACCESSES:
            raise InputError(f"host_access {host_access!r} is unknown; legal: {', '.join(HOST_ACCESSES)}")
        if host_access not in ("none", kind.host_access) and kind.host_access != "read_write":
            raise InputError(
                f"host_access {host_access!r} asked of scope {kind.scope!r} of {where}; legal: {kind.host_access!r}"
            )
    separators = separators_for(extents, axis_separators, kind)
    size: Size = NdSize(physical_shape(extents, separators), name) if separators else dense_bytes(extents, name)
    nbytes = nd_bytes(kind, size.physical_shape, name) if isinstance(size, NdSize) else size
    if kind.max_bytes is not None and nbytes > kind.max_bytes:
        raise InputError(
            f"{name}{list(extents)} has {nbytes} bytes; one allocation of scope {kind.scope!r} of {where} has at most "
            f"{kind.max_bytes}"
        )
    shared = host_access not in (None, "none")
    storage = allocate(where, size, scope=scope, alignment=alignment or 1, shared=shared, allocator=allocator)
    return tensor_in_rows(storage, name, extents, separators) if separators else Tensor(storage, name, extents)


def from_dma_buf(
    fd: int,
    shape: Sequence[int],
    dtype: Any,
    *,
    device: Device | str,
    offset: int = 0,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """The memory of the Linux dma-buf ``fd`` from byte ``offset`` on, used in place by ``device``.

    ``strides`` count elements, None is dense. ``fd`` stays the caller's, to close when he likes. Raises
    ZeroCopyError when the device cannot import it.
    """
    name = dtype_name(dtype)
    where = find_device(device)
    extents = check_shape(shape, name)
    steps = row_major(extents) if strides is None else tuple(strides)
    if offset < 0 or any(step < 0 for step in steps) or len(steps) != len(extents):
        raise InputError(f"offset {offset} and strides {steps} of a dma-buf must be at least 0, one for each dimension")
    last = sum((extent - 1) * step for extent, step in zip(extents, steps, strict=True))
    nbytes = 0 if 0 in extents else (last + 1) * dtype_facts(name).itemsize
    storage = import_memory(where, DmaBuf(fd, offset, nbytes), "rw")
    return Tensor(storage, name, extents, steps)
