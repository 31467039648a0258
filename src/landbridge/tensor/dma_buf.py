"""Memory behind file descriptors: imports a dma-buf as a Tensor, and exports a Tensor's memory for others to map."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from typing import Any

from landbridge.device.api import Device
from landbridge.device.granted import open_file
from landbridge.device.import_source import DmaBuf
from landbridge.device.protocols import AccessMode, MemoryExport
from landbridge.device.registry import device as find_device
from landbridge.dtypes import dtype as dtype_facts
from landbridge.dtypes import dtype_name
from landbridge.errors import InputError, ZeroCopyError
from landbridge.memory.allocators.keepers import retire
from landbridge.memory.borrowed import import_memory
from landbridge.memory.windows import file_windows
from landbridge.shapes.strides import check_shape, check_strides, row_major, span
from landbridge.tensor.tensor import Tensor


def from_dma_buf(
    fd: int,
    shape: Sequence[int],
    dtype: Any,
    *,
    device: Device | str,
    offset: int = 0,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Returns a Tensor over the Linux dma-buf ``fd`` from byte ``offset`` on, which ``device`` uses in place.

    ``strides`` count elements, None is dense. The caller keeps ``fd`` and may close it at any time; a descriptor that
    was opened for reading gives a read-only Tensor. On ``"cpu"`` any file that mmap takes will do, for example a memfd.
    Where devices write past the CPU's caches, open a host view of the Tensor around the host's accesses: that calls
    ``DMA_BUF_IOCTL_SYNC``, as runs on the CPU do for Tensors they are bound to. Raises InputError for a layout that is
    not legal, and ZeroCopyError when the device cannot import it.
    """
    name = dtype_name(dtype)
    where = find_device(device)
    extents = check_shape(shape, name)
    steps = row_major(extents) if strides is None else check_strides(strides, extents)
    if type(fd) is not int or fd < 0 or offset < 0 or any(step < 0 for step in steps):
        raise InputError(f"descriptor {fd!r}, offset {offset} and strides {steps} of a dma-buf must be at least 0")
    storage = import_memory(where, DmaBuf(fd, offset, span(extents, steps) * dtype_facts(name).itemsize), _access(fd))
    return Tensor(storage, name, extents, steps)


def export_fd(tensor: Tensor) -> tuple[int, int]:
    """Returns a new file descriptor of the memory of ``tensor``, which the caller closes, and the byte of the first
    element.

    The memory must be made for sharing, by ``lb.empty(..., host_access="rw")`` on a device that can export it. It lives
    until the Tensor is gone and the descriptor is closed. Raises ZeroCopyError for other memory.
    """
    region = tensor.storage.live_region
    api = region.space.device.capability(MemoryExport)
    if api is None or tensor.storage.owner is not None:
        raise ZeroCopyError(
            f"{tensor!r} has no file descriptor: its memory is of others, or its device exports none; allocate it with "
            "lb.empty(..., device='cpu', host_access='rw')"
        )
    device, begin = region.space.device, region.byte_offset
    with device.state.watching("an export", "export_fd"):
        found = api.export_fd(region.space)
    fd = open_file(found, device, "export_fd")
    retire(region.space)
    tensor.storage.be_known(file_windows(fd), begin)
    return fd, begin + tensor.byte_offset


def _access(fd: int) -> AccessMode:
    """Returns the access that ``fd`` was opened for; the device reports one that is not open."""
    try:
        return "r" if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY else "rw"
    except OSError:
        return "rw"
