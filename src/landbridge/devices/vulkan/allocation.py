"""Allocation: device memory with one buffer over all of it, mapped permanently where the host sees it."""

from __future__ import annotations

import ctypes

from landbridge.device.api import Space
from landbridge.device.checks import check_request, kind_of
from landbridge.devices.vulkan import flags, structs_work
from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.devices.vulkan.logical_device import LogicalDevice
from landbridge.devices.vulkan.memory_types import MemoryType
from landbridge.devices.vulkan.memory_uses import UsedMemory, memory_of
from landbridge.devices.vulkan.result import check
from landbridge.devices.vulkan.structure import Chained
from landbridge.errors import DeviceError, HostViewError, OutOfMemoryError, UnsupportedError


class Allocation(UsedMemory):
    """The handle of a Space: ``nbytes`` bytes that ``buffer`` shows, from ``offset`` in ``memory``.

    ``address`` is where this process maps the first byte, None where it cannot. ``exportable``: it was made to be
    shared with others.
    """

    __slots__ = ("address", "buffer", "exportable", "memory", "memory_type", "offset")

    def __init__(
        self,
        device: DriverObjects,
        memory_type: MemoryType,
        nbytes: int,
        *,
        memory: int,
        buffer: int,
        offset: int,
        address: int | None,
        exportable: bool = False,
    ) -> None:
        super().__init__(device, nbytes, (("Buffer", buffer), ("Memory", memory)))
        self.memory_type = memory_type
        self.memory = memory
        self.buffer = buffer
        self.offset = offset
        self.address = address
        self.exportable = exportable

    @property
    def bound_bytes(self) -> int:
        """Returns the bytes of the buffer, whose last word may reach past ``nbytes``, as shaders see whole words."""
        return _buffer_bytes(self.nbytes)

    @property
    def coherent(self) -> bool:
        """Returns whether the host's accesses need no barriers."""
        return self.memory_type.has(flags.MEMORY_HOST_COHERENT)

    def flush(self, start: int, nbytes: int) -> None:
        """Make what the host wrote to these bytes visible to the device."""
        self._barrier(self.device.calls.vkFlushMappedMemoryRanges, start, nbytes)

    def invalidate(self, start: int, nbytes: int) -> None:
        """Make what the device wrote to these bytes visible to the host."""
        self._barrier(self.device.calls.vkInvalidateMappedMemoryRanges, start, nbytes)

    def _barrier(self, call: object, start: int, nbytes: int) -> None:
        """Call a barrier on these bytes, cut to the space (granules may exceed it) and widened to whole atoms."""
        start, stop = max(0, start), min(self.nbytes, start + nbytes)
        if self.coherent or stop <= start:
            return
        atom = self.device.physical.limits.nonCoherentAtomSize
        first = (self.offset + start) // atom * atom
        last = -(-(self.offset + stop) // atom) * atom
        # Memory that we allocate ends with a whole atom; imported memory with a whole page.
        request = structs_work.VkMappedMemoryRange(memory=self.memory, offset=first, size=last - first)
        check(call(self.device.handle, 1, ctypes.byref(request)), "a barrier of host memory")  # type: ignore[operator]


def allocation_of(space: Space) -> Allocation:
    """Returns the handle of ``space`` as ``memory_of`` gives it; raises HostViewError for an image."""
    memory = memory_of(space)
    if not isinstance(memory, Allocation):
        raise HostViewError(f"the host cannot see images of {space.device}; copy them with t.to_device('cpu')")
    return memory


def alloc_flat(device: LogicalDevice, nbytes: int, alignment: int, scope: str, export_as: int = 0) -> Allocation:
    """Returns ``nbytes`` bytes of ``scope``, allocated as by ``allocate``; raises InputError for an illegal request."""
    kind = kind_of(device.kinds, scope, device.name)
    check_request(nbytes, alignment, device.name)
    if scope not in device.scopes:
        raise UnsupportedError(f"{device.name}: scope {scope!r} holds images; give physical_shape and dtype")
    most = kind.max_bytes or 0
    if nbytes + max(alignment, kind.alignment) > most:
        raise OutOfMemoryError(
            f"{device.name} {scope}: {nbytes} bytes asked, aligned to {alignment}; one allocation has at most "
            f"{most} bytes with its alignment (maxMemoryAllocationSize, heap size); split the tensor"
        )
    device.collect()
    return allocate(device, device.scopes[scope], nbytes, max(alignment, kind.alignment), export_as)


def allocate(
    device: DriverObjects, memory_type: MemoryType, nbytes: int, alignment: int, export_as: int = 0
) -> Allocation:
    """Returns new memory whose first byte is aligned to ``alignment`` where the host sees it. Raises OutOfMemoryError.

    ``export_as``: the handle type that it can be exported as; it then begins where the handle's memory does, and has
    the alignment that the driver gives.
    """
    outside = structs_work.VkExternalMemoryBufferCreateInfo(handleTypes=export_as) if export_as else None
    exported = structs_work.VkExportMemoryAllocateInfo(handleTypes=export_as) if export_as else None
    buffer = device.create("Buffer", _buffer_request(nbytes, outside))
    try:
        needs = _requirements(device, buffer)
        atom = device.physical.limits.nonCoherentAtomSize
        step = max(needs.alignment, alignment)
        size = -(-(needs.size + (0 if export_as else step)) // atom) * atom
        request = structs_work.VkMemoryAllocateInfo(exported, allocationSize=size, memoryTypeIndex=memory_type.index)
        memory = device.create("Memory", request)
    except BaseException:
        device.destroy("Buffer", buffer)
        raise
    try:
        address, offset = None, 0
        if memory_type.has(flags.MEMORY_HOST_VISIBLE):
            mapped = _map(device, memory)
            offset = 0 if export_as else -(-mapped // step) * step - mapped
            address = mapped + offset
        if offset % needs.alignment:
            raise DeviceError(
                f"{device.name} maps memory at {address:#x}, which is not aligned to the {needs.alignment} bytes its "
                f"buffers ask; ask for an alignment below {step}"
            )
        result = device.calls.vkBindBufferMemory(device.handle, buffer, memory, offset)
        check(result, f"binding a buffer of {nbytes} bytes at {offset}")
    except BaseException:
        device.destroy("Buffer", buffer)
        device.destroy("Memory", memory)
        raise
    return Allocation(
        device,
        memory_type,
        nbytes,
        memory=memory,
        buffer=buffer,
        offset=offset,
        address=address,
        exportable=bool(export_as),
    )


def import_as(
    device: DriverObjects,
    memory_type: MemoryType,
    source: Chained,
    nbytes: int,
    size: int,
    offset: int,
    handle_type: int,
    address: int | None,
) -> Allocation:
    """Import ``nbytes`` bytes from ``offset`` on of the ``size`` bytes of others that ``source`` names.

    ``address`` is where this process sees the first of the ``nbytes``, None to map them if the type allows.
    """
    outside = structs_work.VkExternalMemoryBufferCreateInfo(handleTypes=handle_type)
    buffer = device.create("Buffer", _buffer_request(nbytes, outside))
    memory = 0
    try:
        request = structs_work.VkMemoryAllocateInfo(source, allocationSize=size, memoryTypeIndex=memory_type.index)
        memory = device.create("Memory", request)
        visible = memory_type.has(flags.MEMORY_HOST_VISIBLE)
        if visible and (address is None or not memory_type.has(flags.MEMORY_HOST_COHERENT)):
            mapped = _map(device, memory) + offset  # barriers are for mapped memory only
            address = mapped if address is None else address
        result = device.calls.vkBindBufferMemory(device.handle, buffer, memory, offset)
        check(result, f"binding a buffer of {nbytes} imported bytes")
    except BaseException:
        device.destroy("Buffer", buffer)
        if memory:
            device.destroy("Memory", memory)
        raise
    return Allocation(device, memory_type, nbytes, memory=memory, buffer=buffer, offset=offset, address=address)


def _buffer_request(nbytes: int, outside: Chained | None = None) -> structs_work.VkBufferCreateInfo:
    return structs_work.VkBufferCreateInfo(outside, size=_buffer_bytes(nbytes), usage=flags.BUFFER_USAGE)


def _buffer_bytes(nbytes: int) -> int:
    return max(4, -(-nbytes // 4) * 4)


def _requirements(device: DriverObjects, buffer: int) -> structs_work.VkMemoryRequirements:
    needs = structs_work.VkMemoryRequirements()
    device.calls.vkGetBufferMemoryRequirements(device.handle, buffer, ctypes.byref(needs))
    return needs


def _map(device: DriverObjects, memory: int) -> int:
    pointer = ctypes.c_void_p()
    result = device.calls.vkMapMemory(device.handle, memory, 0, flags.WHOLE_SIZE, 0, ctypes.byref(pointer))
    check(result, "mapping memory")
    return pointer.value or 0
