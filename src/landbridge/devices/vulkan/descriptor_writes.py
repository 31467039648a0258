"""DescriptorWrites: binds memory to the descriptor sets of a kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from landbridge.devices.vulkan import flags, structs_work
from landbridge.devices.vulkan.allocation import Allocation
from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.devices.vulkan.images import Image
from landbridge.devices.vulkan.spirv_facts import EntryPoint
from landbridge.devices.vulkan.steps import MemoryLocation
from landbridge.process.locks import new_lock


class DescriptorWrites:
    """The structures that name the bindings of ``entry``, made once: to make them takes longer than the driver's call.

    Threads fill them one at a time.
    """

    def __init__(self, device: DriverObjects, entry: EntryPoint) -> None:
        self._device = device
        self._lock = new_lock()
        count = len(entry.bindings)
        self._writes = (structs_work.VkWriteDescriptorSet * count)()
        self._buffers = (structs_work.VkDescriptorBufferInfo * count)()
        self._images = (structs_work.VkDescriptorImageInfo * count)()
        for number, (binding, kind) in enumerate(descriptor_types(entry).items()):
            write = self._writes[number]
            write.sType = structs_work.VkWriteDescriptorSet.STRUCTURE_TYPE
            write.dstBinding, write.descriptorCount, write.descriptorType = binding, 1, kind
            if binding in entry.images:
                self._images[number].imageLayout = flags.IMAGE_LAYOUT_GENERAL
                write.pImageInfo = ctypes.pointer(self._images[number])
            else:
                write.pBufferInfo = ctypes.pointer(self._buffers[number])

    def write(self, descriptors: int, places: Sequence[MemoryLocation]) -> None:
        """Bind ``places``, one for each binding and of its kind, to the set ``descriptors``."""
        limits = self._device.physical.limits
        alignment, most = limits.minStorageBufferOffsetAlignment, limits.maxStorageBufferRange
        with self._lock:
            for number, location in enumerate(places):
                self._writes[number].dstSet = descriptors
                memory = location.memory
                if isinstance(memory, Image):
                    self._images[number].imageView = memory.view
                    continue
                assert isinstance(memory, Allocation)
                start = location.offset // alignment * alignment  # a descriptor begins where the device allows
                buffer = self._buffers[number]
                buffer.buffer, buffer.offset = memory.buffer, start
                buffer.range = min(memory.bound_bytes - start, most)
            self._device.calls.vkUpdateDescriptorSets(self._device.handle, len(places), self._writes, 0, None)


def descriptor_types(entry: EntryPoint) -> dict[int, int]:
    """Returns the VkDescriptorType of each binding, in order."""
    images = {
        binding: flags.DESCRIPTOR_STORAGE_IMAGE if format else flags.DESCRIPTOR_SAMPLED_IMAGE
        for binding, format in entry.images.items()
    }
    return {binding: images.get(binding, flags.DESCRIPTOR_STORAGE_BUFFER) for binding in entry.bindings}
