"""PhysicalDevice: what a driver reports of one device before it is opened."""

from __future__ import annotations

import ctypes
from typing import Any

from landbridge.devices.vulkan import flags, structs_device
from landbridge.devices.vulkan.calls import Calls
from landbridge.devices.vulkan.cores import core_count, register_count
from landbridge.devices.vulkan.memory_types import MemoryLimits, MemoryType
from landbridge.devices.vulkan.result import check
from landbridge.devices.vulkan.structure import Chained
from landbridge.records import record

HOST_IMPORT = "VK_EXT_external_memory_host"
MEMORY_FD = "VK_KHR_external_memory_fd"
DMA_BUF = "VK_EXT_external_memory_dma_buf"

#: Float controls that count as features here: with them, signs of zeros, infinities and NaNs of so many bits are kept.
PRESERVED = {bits: f"shaderSignedZeroInfNanPreserveFloat{bits}" for bits in (16, 32, 64)}

#: The names of PCI vendors, and of those that Khronos gave a number (VkVendorId).
_VENDORS = {
    0x1002: "AMD",
    0x1010: "Imagination Technologies",
    0x106B: "Apple",
    0x10DE: "NVIDIA",
    0x13B5: "Arm",
    0x14E4: "Broadcom",
    0x5143: "Qualcomm",
    0x8086: "Intel",
    0x10005: "Mesa",
}


@record(frozen=True, eq=False)
class PhysicalDevice:
    """One device of a driver. ``features`` and ``extensions`` are Vulkan's names of what it has.

    ``queue_family`` computes and copies; ``timestamp_bits`` of its clock are valid, 0 is none. ``cores``: the number of
    units that run workgroups, ``registers``: those of 32 bits that a workgroup may have, both None where no extension
    reports them. The numbers and ``cache_uuid`` (pipelineCacheUUID) say whose pipeline caches the driver takes.
    """

    handle: int
    name: str
    vendor: str
    driver: str
    version: int
    device_type: str
    limits: Any
    subgroup_size: int
    max_allocation: int
    memory_types: tuple[MemoryType, ...]
    features: frozenset[str]
    extensions: frozenset[str]
    queue_family: int | None
    timestamp_bits: int
    import_alignment: int | None
    cores: int | None = None
    registers: int | None = None
    vendor_id: int = 0
    device_id: int = 0
    driver_version: int = 0
    cache_uuid: bytes = bytes(16)

    @property
    def memory_limits(self) -> MemoryLimits:
        """Returns the sizes and alignments that limit its memory."""
        return MemoryLimits(
            max_allocation=self.max_allocation,
            max_binding=self.limits.maxStorageBufferRange,
            binding_alignment=self.limits.minStorageBufferOffsetAlignment,
            map_alignment=self.limits.minMemoryMapAlignment,
            atom=self.limits.nonCoherentAtomSize,
            import_alignment=self.import_alignment,
            exportable={MEMORY_FD, DMA_BUF} <= self.extensions,
        )

    @property
    def refusal(self) -> str | None:
        """Returns why Landbridge does not use the device; None when it does."""
        if self.version < flags.API_1_2:
            return f"it has Vulkan {version_text(self.version)}, and 1.2 is needed"
        if self.queue_family is None:
            return "it has no queue that computes"
        if "timelineSemaphore" not in self.features:
            return "it has no timeline semaphores"
        return None


def describe(calls: Calls, handle: int) -> PhysicalDevice:
    """Returns what the driver reports of the physical device ``handle``."""
    extensions = _extensions(calls, handle)
    basic = structs_device.VkPhysicalDeviceProperties()
    calls.vkGetPhysicalDeviceProperties(handle, ctypes.byref(basic))
    modern = basic.apiVersion >= flags.API_1_2  # older drivers do not know the structures below
    driver = structs_device.VkPhysicalDeviceDriverProperties()
    floats = structs_device.VkPhysicalDeviceFloatControlsProperties(driver)
    v11 = structs_device.VkPhysicalDeviceVulkan11Properties(floats)
    imports = structs_device.VkPhysicalDeviceExternalMemoryHostPropertiesEXT(v11)
    imported = modern and HOST_IMPORT in extensions
    if modern:
        properties = structs_device.VkPhysicalDeviceProperties2(imports if imported else v11)
        calls.vkGetPhysicalDeviceProperties2(handle, ctypes.byref(properties))

    def fill(extension: Chained) -> None:
        query = structs_device.VkPhysicalDeviceProperties2(extension)
        calls.vkGetPhysicalDeviceProperties2(handle, ctypes.byref(query))

    family, timestamp_bits = _compute_family(calls, handle)
    name = basic.deviceName.decode(errors="replace")
    declared = f"{driver.driverName.decode(errors='replace')} {driver.driverInfo.decode(errors='replace')}".strip()
    return PhysicalDevice(
        handle=handle,
        name=name,
        vendor=_VENDORS.get(basic.vendorID, f"{basic.vendorID:#x}"),
        driver=declared or str(basic.driverVersion),
        version=basic.apiVersion,
        device_type=flags.DEVICE_TYPES[min(basic.deviceType, len(flags.DEVICE_TYPES) - 1)],
        limits=basic.limits,
        subgroup_size=v11.subgroupSize,
        max_allocation=v11.maxMemoryAllocationSize,
        memory_types=_memory_types(calls, handle),
        features=_features(calls, handle) | {name for name in PRESERVED.values() if getattr(floats, name)}
        if modern
        else frozenset(),
        extensions=extensions,
        queue_family=family,
        timestamp_bits=timestamp_bits,
        import_alignment=imports.minImportedHostPointerAlignment if imported else None,
        cores=core_count(extensions, fill) if modern else None,
        registers=register_count(extensions, fill) if modern else None,
        vendor_id=basic.vendorID,
        device_id=basic.deviceID,
        driver_version=basic.driverVersion,
        cache_uuid=bytes(basic.pipelineCacheUUID),
    )


def version_text(version: int) -> str:
    """Returns the text of a packed version number, such as ``1.3.230``."""
    return f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}.{version & 0xFFF}"


def enabled_features(names: frozenset[str]) -> structs_device.VkPhysicalDeviceFeatures2:
    """Returns the chain that switches on the features called ``names`` when a device is opened."""
    v12 = structs_device.VkPhysicalDeviceVulkan12Features()
    v11 = structs_device.VkPhysicalDeviceVulkan11Features(v12)
    head = structs_device.VkPhysicalDeviceFeatures2(v11)
    for structure in (head.features, v11, v12):
        for field, _ in structure._fields_:
            if field in names:
                setattr(structure, field, 1)
    return head


def _features(calls: Calls, handle: int) -> frozenset[str]:
    v12 = structs_device.VkPhysicalDeviceVulkan12Features()
    v11 = structs_device.VkPhysicalDeviceVulkan11Features(v12)
    head = structs_device.VkPhysicalDeviceFeatures2(v11)
    calls.vkGetPhysicalDeviceFeatures2(handle, ctypes.byref(head))
    return frozenset(field for part in (head.features, v11, v12) for field, _ in part._fields_ if getattr(part, field))


def _memory_types(calls: Calls, handle: int) -> tuple[MemoryType, ...]:
    memory = structs_device.VkPhysicalDeviceMemoryProperties()
    calls.vkGetPhysicalDeviceMemoryProperties(handle, ctypes.byref(memory))
    types = []
    for index in range(memory.memoryTypeCount):
        entry = memory.memoryTypes[index]
        heap = memory.memoryHeaps[entry.heapIndex]
        local = bool(heap.flags & flags.HEAP_DEVICE_LOCAL)
        types.append(MemoryType(index, entry.propertyFlags, entry.heapIndex, heap.size, local))
    return tuple(types)


def _compute_family(calls: Calls, handle: int) -> tuple[int | None, int]:
    """Returns the queue family for compute, preferably one with graphics, and how many bits of its clock are valid.

    A family that computes can copy (Vulkan 1.3 specification, section 5.3.1 "Queue Family Properties").
    """
    count = ctypes.c_uint32()
    calls.vkGetPhysicalDeviceQueueFamilyProperties(handle, ctypes.byref(count), None)
    families = (structs_device.VkQueueFamilyProperties * count.value)()
    calls.vkGetPhysicalDeviceQueueFamilyProperties(handle, ctypes.byref(count), families)
    for index, family in enumerate(families):
        if family.queueFlags & flags.QUEUE_COMPUTE:
            return index, family.timestampValidBits
    return None, 0


def _extensions(calls: Calls, handle: int) -> frozenset[str]:
    count = ctypes.c_uint32()
    subject = "listing the extensions of a Vulkan device"
    check(calls.vkEnumerateDeviceExtensionProperties(handle, None, ctypes.byref(count), None), subject)
    found = (structs_device.VkExtensionProperties * count.value)()
    check(calls.vkEnumerateDeviceExtensionProperties(handle, None, ctypes.byref(count), found), subject)
    return frozenset(entry.extensionName.decode(errors="replace") for entry in found)
