"""Imports of the application's memory: buffers over host pointers, or the pointers themselves."""

from __future__ import annotations

import mmap

import numpy as np
import pyopencl as cl

from landbridge.device.import_source import BusAddress, DmaBuf, HostPointer, ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.devices.opencl.blocks import BufferBlock, host_bytes
from landbridge.devices.opencl.driver_errors import driver_call
from landbridge.devices.opencl.instance import OpenCLInstance
from landbridge.errors import DeviceError, ZeroCopyError
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.targets.opencl import SVM_SCOPE


def import_block(instance: OpenCLInstance, source: ImportSource, access: AccessMode) -> BufferBlock:
    """Returns ``source`` as a block, its bytes where they are; raises ZeroCopyError with the reason when that cannot
    be.
    """
    match source:
        case HostPointer(address=address, nbytes=nbytes):
            return _import_pointer(instance, address, nbytes, access, None)
        case BusAddress(host_address=int(address), nbytes=nbytes):
            return _import_pointer(instance, address, nbytes, access, None)
        case DmaBuf(fd=fd, offset=offset, nbytes=nbytes):
            return _import_file(instance, fd, offset, nbytes, access)
    raise ZeroCopyError(
        f"opencl:{instance.index} cannot use {source} in place: this process does not map it; import a HostPointer"
    )


def _import_pointer(
    instance: OpenCLInstance, address: int, nbytes: int, access: AccessMode, keep: object
) -> BufferBlock:
    required = instance.import_alignment
    where = f"opencl:{instance.index} cannot use {nbytes} bytes at {address:#x} in place"
    if not required:
        raise ZeroCopyError(
            f"{where}: scope {GLOBAL_SCOPE!r} is not importable, because the driver keeps a copy of memory it did not "
            "allocate; allocate with lb.empty(..., device=..., host_access='read_write') where it says unified, else "
            "allow a copy"
        )
    actual = address & -address if address else required
    if actual < required:
        raise ZeroCopyError(
            f"{where}: the address must be a multiple of {required} and is one of {actual}; allocate the memory with "
            "lb.empty or mmap, or allow a copy"
        )
    size_multiple = min(required, 64)  # whole cache lines: Intel's GPUs require them besides the page
    if nbytes < 1 or nbytes % size_multiple:
        raise ZeroCopyError(
            f"{where}: the size must be a multiple of {size_multiple}, at least one; import a larger range, or allow a "
            "copy"
        )
    kinds = instance.facts.kinds
    limit = kinds[GLOBAL_SCOPE].max_bytes
    if limit is not None and nbytes > limit:
        raise ZeroCopyError(f"{where}: the driver takes at most {limit} bytes (CL_DEVICE_MAX_MEM_ALLOC_SIZE)")
    mode = cl.mem_flags.READ_ONLY if access == "r" else cl.mem_flags.READ_WRITE
    with driver_call(f"an import of {nbytes} bytes at {address:#x}"):
        buffer = cl.Buffer(instance.context, cl.mem_flags.USE_HOST_PTR | mode, hostbuf=host_bytes(address, nbytes))
    system = SVM_SCOPE in kinds and kinds[SVM_SCOPE].importable
    return BufferBlock(
        instance.context,
        SVM_SCOPE if system else GLOBAL_SCOPE,
        buffer,
        0,
        nbytes,
        address=address,
        pointer=address if system else None,
        readonly=access == "r",
        keep=keep,
    )


def _import_file(instance: OpenCLInstance, fd: int, offset: int, nbytes: int, access: AccessMode) -> BufferBlock:
    """Returns a dma-buf, or a memfd, through a mapping of this process, which is the same memory."""
    low = offset // mmap.PAGESIZE * mmap.PAGESIZE
    protection = mmap.PROT_READ | (0 if access == "r" else mmap.PROT_WRITE)
    try:
        mapping = mmap.mmap(fd, offset - low + nbytes, mmap.MAP_SHARED, protection, offset=low)
    except (OSError, ValueError) as error:
        raise ZeroCopyError(
            f"opencl:{instance.index} cannot use the dma-buf {fd} in place: this process cannot map {nbytes} bytes "
            f"from {offset} on of it ({error}), and the driver imports no file descriptors"
        ) from error
    address = host_bytes_of(mapping) + offset - low
    try:
        return _import_pointer(instance, address, nbytes, access, mapping)
    except DeviceError as error:  # memory of another device, which this driver cannot pin
        raise ZeroCopyError(f"opencl:{instance.index} cannot use the dma-buf {fd} in place: {error}") from error


def host_bytes_of(mapping: mmap.mmap) -> int:
    """Returns the address of ``mapping``, read-only or not."""
    return int(np.frombuffer(mapping, np.uint8).ctypes.data)
