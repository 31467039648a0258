"""Values of DeviceAttr, and the options of a Target, from what a driver reports."""

from __future__ import annotations

from typing import Any

from landbridge.device.attr import DeviceAttr
from landbridge.devices.vulkan import flags
from landbridge.devices.vulkan.logical_device import LogicalDevice
from landbridge.devices.vulkan.physical_device import PRESERVED, PhysicalDevice, version_text
from landbridge.memory_kind import GLOBAL_SCOPE

#: llvmpipe counts 65535 iterations down for all loops of an invocation together, so that none hangs (Mesa,
#: LP_MAX_TGSI_LOOP_ITERATIONS), and ends the loop in which none is left.
_LLVMPIPE_ITERATIONS = 65534


def attribute(physical: PhysicalDevice, attr: DeviceAttr) -> object | None:
    """Returns the value of ``attr``; None where Vulkan cannot query it."""
    match attr:
        case DeviceAttr.PRODUCT_NAME:
            return physical.name
        case DeviceAttr.VENDOR:
            return physical.vendor
        case DeviceAttr.DRIVER_VERSION:
            return physical.driver
        case DeviceAttr.API_VERSION:
            return version_text(physical.version)
        case DeviceAttr.COMPUTE_UNITS:
            return physical.cores
        case DeviceAttr.REGISTERS_PER_BLOCK:
            return physical.registers
        case DeviceAttr.SUBGROUP_SIZE:
            return physical.subgroup_size or None
        case DeviceAttr.TOTAL_MEMORY:
            local = {t.heap: t.heap_bytes for t in physical.memory_types if t.heap_is_local}
            return sum(local.values()) or None
        case DeviceAttr.FEATURES:
            return tuple(sorted(physical.features | physical.extensions))
    return _limit(physical.limits, attr)


def _limit(limits: Any, attr: DeviceAttr) -> object | None:
    """Returns the value of ``attr`` from the limits that every device reports; None for attributes that are none."""
    match attr:
        case DeviceAttr.MAX_THREADS_PER_BLOCK:
            return int(limits.maxComputeWorkGroupInvocations)
        case DeviceAttr.MAX_BLOCK_DIMENSIONS:
            return tuple(min(each, limits.maxComputeWorkGroupInvocations) for each in limits.maxComputeWorkGroupSize)
        case DeviceAttr.LOCAL_MEMORY_BYTES:
            return int(limits.maxComputeSharedMemorySize)
        case DeviceAttr.IMAGE_PITCH_BYTES:
            return int(limits.optimalBufferCopyRowPitchAlignment) or None
    return None


def target_properties(device: LogicalDevice) -> dict[str, Any]:
    """Returns options of the target kind ``vulkan`` for ``device``.

    A driver that runs on the host's CPU has no shared memory of its own: it is ordinary memory.
    """
    physical, limits = device.physical, device.physical.limits
    memory = device.scopes[GLOBAL_SCOPE]
    sizes = tuple(limits.maxComputeWorkGroupSize)
    visible = [t for t in device.scopes.values() if t.has(flags.MEMORY_HOST_VISIBLE)]
    narrow = {"shaderInt8", "shaderInt16", "storageBuffer8BitAccess", "storageBuffer16BitAccess"}
    return {
        "kind": "vulkan",
        **({} if physical.cores is None else {"num-cores": physical.cores}),
        "max-workgroup-size": limits.maxComputeWorkGroupInvocations,
        "max-workgroup-size-x": sizes[0],
        "max-workgroup-size-y": sizes[1],
        "max-workgroup-size-z": sizes[2],
        "max-workgroups": min(limits.maxComputeWorkGroupCount),
        **({"max-loop-iterations": _LLVMPIPE_ITERATIONS} if physical.driver.startswith("llvmpipe ") else {}),
        "local-memory-bytes": limits.maxComputeSharedMemorySize,
        "dedicated-local-memory": physical.device_type != "CPU",
        "rounded-quotients": physical.device_type == "CPU",
        "subgroup-size": physical.subgroup_size,
        # A kernel has a push constant of four bytes for each buffer.
        "max-storage-buffers": min(limits.maxPerStageDescriptorStorageBuffers, limits.maxPushConstantsSize // 4),
        "push-constant-bytes": limits.maxPushConstantsSize,
        "fp16": "shaderFloat16" in device.features,
        "fp64": "shaderFloat64" in device.features,
        "preserve-nan": PRESERVED[32] in device.features
        and (PRESERVED[64] in device.features or "shaderFloat64" not in device.features),
        "int64": "shaderInt64" in device.features,
        "small-elements": narrow <= device.features,
        "images": "shaderStorageImageExtendedFormats" in device.features,
        "image-width": limits.maxImageDimension2D,
        "image-height": limits.maxImageDimension2D,
        "max-sampled-images": limits.maxPerStageDescriptorSampledImages,
        "max-storage-images": limits.maxPerStageDescriptorStorageImages,
        "unified-memory": memory.has(flags.MEMORY_HOST_VISIBLE),
        "coherent-memory": all(t.has(flags.MEMORY_HOST_COHERENT) for t in visible),
        "memory-alignment": max(limits.minStorageBufferOffsetAlignment, limits.minMemoryMapAlignment),
        "coherence-granule": limits.nonCoherentAtomSize,
        "import-alignment": physical.import_alignment or 0,
        "max-allocation-bytes": min(physical.max_allocation, memory.heap_bytes),
        "max-binding-bytes": limits.maxStorageBufferRange,
        "memory-bytes": memory.heap_bytes,
    }
