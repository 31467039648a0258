"""Imports of memory by address or file descriptor, and exports of ours; an error gives the reason why not."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from contextlib import suppress

from landbridge.device.import_source import DmaBuf, HostPointer, ImportSource
from landbridge.devices.vulkan import flags, structs_work
from landbridge.devices.vulkan.allocation import Allocation, import_as
from landbridge.devices.vulkan.logical_device import LogicalDevice
from landbridge.devices.vulkan.memory_types import MemoryType
from landbridge.devices.vulkan.physical_device import DMA_BUF, HOST_IMPORT, MEMORY_FD
from landbridge.devices.vulkan.result import result_name
from landbridge.errors import DeviceError, LandbridgeError, OutOfMemoryError, ZeroCopyError


def import_memory(device: LogicalDevice, source: ImportSource) -> tuple[str, Allocation]:
    """Returns ``source`` as memory of ``device``, in place, and its scope; raises ZeroCopyError with the reason."""
    match source:
        case HostPointer():
            return _import_host(device, source)
        case DmaBuf():
            return _import_dma_buf(device, source)
    raise ZeroCopyError(
        f"{device.name} cannot use {source} in place: Vulkan takes no bus addresses; map the memory and import a "
        "HostPointer"
    )


def _import_host(device: LogicalDevice, source: HostPointer) -> tuple[str, Allocation]:
    """Imports host memory, whose address and size must be multiples of ``minImportedHostPointerAlignment``.

    Drivers need not check that (Vulkan 1.3 specification, VkImportMemoryHostPointerInfoEXT).
    """
    required = device.physical.import_alignment
    subject = f"{device.name} cannot use {source.nbytes} bytes of the host at {source.address:#x} in place"
    if required is None:
        raise ZeroCopyError(
            f"{subject}: its driver has no {HOST_IMPORT}; copy the data, or install a driver that has it"
        )
    if source.nbytes <= 0 or source.address <= 0 or source.address % required or source.nbytes % required:
        raise ZeroCopyError(
            f"{subject}: address and size must be multiples of {required} (minImportedHostPointerAlignment); the "
            "address "
            f"is {source.address % required} bytes past one and the size {source.nbytes % required}. Take memory from "
            f"mmap of a multiple of {required} bytes, or from lb.empty(..., device='{device.name}', host_access='rw')"
        )
    properties = structs_work.VkMemoryHostPointerPropertiesEXT()
    result = device.calls.vkGetMemoryHostPointerPropertiesEXT(
        device.handle, flags.HANDLE_HOST_ALLOCATION, source.address, ctypes.byref(properties)
    )
    if result < 0:
        raise ZeroCopyError(f"{subject}: the driver answered {result_name(result)}; copy the data")
    scope, memory_type = _scope_of(device.scopes, properties.memoryTypeBits, subject)
    request = structs_work.VkImportMemoryHostPointerInfoEXT(
        handleType=flags.HANDLE_HOST_ALLOCATION, pHostPointer=source.address
    )
    try:
        return scope, import_as(
            device,
            memory_type,
            request,
            source.nbytes,
            source.nbytes,
            0,
            flags.HANDLE_HOST_ALLOCATION,
            source.address,
        )
    except (DeviceError, OutOfMemoryError) as error:
        raise _refusal(subject, error) from error


def _import_dma_buf(device: LogicalDevice, source: DmaBuf) -> tuple[str, Allocation]:
    """Imports a dma-buf; the caller keeps the descriptor."""
    subject = f"{device.name} cannot use {source.nbytes} bytes from {source.offset} of the dma-buf {source.fd} in place"
    missing = [name for name in (MEMORY_FD, DMA_BUF) if name not in device.extensions]
    if missing:
        raise ZeroCopyError(f"{subject}: its driver has no {' and no '.join(missing)}; map the dma-buf and import that")
    alignment = device.physical.limits.minStorageBufferOffsetAlignment
    try:
        size = os.lseek(source.fd, 0, os.SEEK_END)
    except OSError as error:
        raise ZeroCopyError(f"{subject}: {error}; give the descriptor of a dma-buf") from error
    if source.nbytes <= 0 or source.offset < 0 or source.offset + source.nbytes > size or source.offset % alignment:
        raise ZeroCopyError(
            f"{subject}: it has {size} bytes, and an offset must be a multiple of {alignment}; give a range inside it"
        )
    properties = structs_work.VkMemoryFdPropertiesKHR()
    result = device.calls.vkGetMemoryFdPropertiesKHR(
        device.handle, flags.HANDLE_DMA_BUF, source.fd, ctypes.byref(properties)
    )
    if result < 0:
        raise ZeroCopyError(f"{subject}: the driver answered {result_name(result)}; copy the data")
    scope, memory_type = _scope_of(device.scopes, properties.memoryTypeBits, subject)
    duplicate = os.dup(source.fd)  # a successful import takes the descriptor over
    request = structs_work.VkImportMemoryFdInfoKHR(handleType=flags.HANDLE_DMA_BUF, fd=duplicate)
    try:
        return scope, import_as(
            device, memory_type, request, source.nbytes, size, source.offset, flags.HANDLE_DMA_BUF, None
        )
    except (DeviceError, OutOfMemoryError) as error:
        with suppress(OSError):  # some drivers close a descriptor that they refuse
            os.close(duplicate)
        raise _refusal(subject, error) from error


def export_handle(device: LogicalDevice) -> int:
    """Returns the handle type for exports of shared memory; 0 where the driver has no dma-bufs."""
    return flags.HANDLE_DMA_BUF if {MEMORY_FD, DMA_BUF} <= set(device.extensions) else 0


def export_dma_buf(device: LogicalDevice, allocation: Allocation) -> int:
    """Returns a new file descriptor of ``allocation``, memory of ``device``; raises ZeroCopyError unless it is
    shared.
    """
    handle_type = export_handle(device)
    if not handle_type:
        missing = [name for name in (MEMORY_FD, DMA_BUF) if name not in device.extensions]
        raise ZeroCopyError(f"{device.name} exports no memory: its driver has no {' and no '.join(missing)}")
    if not allocation.exportable:
        raise ZeroCopyError(
            f"a space of {device.name} was not made to be shared; allocate it with lb.empty(..., host_access='rw')"
        )
    request = structs_work.VkMemoryGetFdInfoKHR(memory=allocation.memory, handleType=handle_type)
    found = ctypes.c_int(-1)
    result = device.calls.vkGetMemoryFdKHR(device.handle, ctypes.byref(request), ctypes.byref(found))
    if result < 0:
        raise ZeroCopyError(f"{device.name} does not export {allocation.nbytes} bytes: {result_name(result)}")
    return found.value


def _scope_of(scopes: Mapping[str, MemoryType], type_bits: int, subject: str) -> tuple[str, MemoryType]:
    """Returns the first scope whose memory type is one of ``type_bits``, scopes that the host sees first."""
    fitting = [(scope, kind) for scope, kind in scopes.items() if type_bits >> kind.index & 1]
    fitting.sort(key=lambda pair: not pair[1].has(flags.MEMORY_HOST_VISIBLE))
    if not fitting:
        kinds = ", ".join(f"{scope} (type {kind.index})" for scope, kind in scopes.items())
        raise ZeroCopyError(
            f"{subject}: the driver takes such memory as types {type_bits:#b}, and the scopes are {kinds}; copy the "
            "data"
        )
    return fitting[0]


def _refusal(subject: str, error: LandbridgeError) -> ZeroCopyError:
    return ZeroCopyError(f"{subject}: {error}; copy the data")
