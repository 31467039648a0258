"""The structures of memory, queues and compute work, named and laid out as in vulkan_core.h (Vulkan 1.3)."""

from __future__ import annotations

import ctypes

from landbridge.devices.vulkan.structure import Chained, layout


class VkMemoryAllocateInfo(Chained):
    """The argument of ``vkAllocateMemory``."""

    STRUCTURE_TYPE = 5
    _fields_ = layout("u64: allocationSize u32: memoryTypeIndex")


class VkMemoryRequirements(ctypes.Structure):
    """What a buffer requires of its memory."""

    _fields_ = layout("u64: size alignment u32: memoryTypeBits")


class VkBufferCreateInfo(Chained):
    """The argument of ``vkCreateBuffer``."""

    STRUCTURE_TYPE = 12
    _fields_ = layout("u32: flags u64: size u32: usage sharingMode queueFamilyIndexCount *u32: pQueueFamilyIndices")


class VkMappedMemoryRange(Chained):
    """A range to flush or to invalidate."""

    STRUCTURE_TYPE = 6
    _fields_ = layout("u64: memory offset size")


class VkExternalMemoryBufferCreateInfo(Chained):
    """The kinds of external memory a buffer may be bound to."""

    STRUCTURE_TYPE = 1000072000
    _fields_ = layout("u32: handleTypes")


class VkImportMemoryHostPointerInfoEXT(Chained):
    """Memory of this process to import."""

    STRUCTURE_TYPE = 1000178000
    _fields_ = layout("u32: handleType pointer: pHostPointer")


class VkMemoryHostPointerPropertiesEXT(Chained):
    """The memory types an address can be imported as."""

    STRUCTURE_TYPE = 1000178001
    _fields_ = layout("u32: memoryTypeBits")


class VkExportMemoryAllocateInfo(Chained):
    """The kinds of handle an allocation can be exported as."""

    STRUCTURE_TYPE = 1000072002
    _fields_ = layout("u32: handleTypes")


class VkImportMemoryFdInfoKHR(Chained):
    """A file descriptor to import; the driver owns it afterwards."""

    STRUCTURE_TYPE = 1000074000
    _fields_ = layout("u32: handleType i32: fd")


class VkMemoryFdPropertiesKHR(Chained):
    """The memory types a file descriptor can be imported as."""

    STRUCTURE_TYPE = 1000074001
    _fields_ = layout("u32: memoryTypeBits")


class VkMemoryGetFdInfoKHR(Chained):
    """Memory to export."""

    STRUCTURE_TYPE = 1000074002
    _fields_ = layout("u64: memory u32: handleType")


class VkCommandPoolCreateInfo(Chained):
    """The argument of ``vkCreateCommandPool``."""

    STRUCTURE_TYPE = 39
    _fields_ = layout("u32: flags queueFamilyIndex")


class VkCommandBufferAllocateInfo(Chained):
    """The argument of ``vkAllocateCommandBuffers``."""

    STRUCTURE_TYPE = 40
    _fields_ = layout("u64: commandPool u32: level commandBufferCount")


class VkCommandBufferBeginInfo(Chained):
    """The intended use of a command buffer."""

    STRUCTURE_TYPE = 42
    _fields_ = layout("u32: flags pointer: pInheritanceInfo")


class VkBufferCopy(ctypes.Structure):
    """One range to copy."""

    _fields_ = layout("u64: srcOffset dstOffset size")


class VkMemoryBarrier(Chained):
    """Accesses to be ordered."""

    STRUCTURE_TYPE = 46
    _fields_ = layout("u32: srcAccessMask dstAccessMask")


class VkSubmitInfo(Chained):
    """One batch of work for a queue."""

    STRUCTURE_TYPE = 4
    _fields_ = layout(
        """
        u32: waitSemaphoreCount *u64: pWaitSemaphores *u32: pWaitDstStageMask u32: commandBufferCount *pointer:
        pCommandBuffers u32: signalSemaphoreCount *u64: pSignalSemaphores
        """
    )


class VkTimelineSemaphoreSubmitInfo(Chained):
    """The values a batch waits for and signals."""

    STRUCTURE_TYPE = 1000207003
    _fields_ = layout(
        """
        u32: waitSemaphoreValueCount *u64: pWaitSemaphoreValues u32: signalSemaphoreValueCount *u64:
        pSignalSemaphoreValues
        """
    )


class VkSemaphoreTypeCreateInfo(Chained):
    """The type of a semaphore that counts."""

    STRUCTURE_TYPE = 1000207002
    _fields_ = layout("u32: semaphoreType u64: initialValue")


class VkSemaphoreCreateInfo(Chained):
    """The argument of ``vkCreateSemaphore``."""

    STRUCTURE_TYPE = 9
    _fields_ = layout("u32: flags")


class VkSemaphoreWaitInfo(Chained):
    """The argument of ``vkWaitSemaphores``."""

    STRUCTURE_TYPE = 1000207004
    _fields_ = layout("u32: flags semaphoreCount *u64: pSemaphores pValues")


class VkQueryPoolCreateInfo(Chained):
    """The argument of ``vkCreateQueryPool``."""

    STRUCTURE_TYPE = 11
    _fields_ = layout("u32: flags queryType queryCount pipelineStatistics")


class VkShaderModuleCreateInfo(Chained):
    """SPIR-V as the argument of ``vkCreateShaderModule``."""

    STRUCTURE_TYPE = 16
    _fields_ = layout("u32: flags size: codeSize *u32: pCode")


class VkPipelineCacheCreateInfo(Chained):
    """The argument of ``vkCreatePipelineCache``."""

    STRUCTURE_TYPE = 17
    _fields_ = layout("u32: flags size: initialDataSize pointer: pInitialData")


class VkDescriptorSetLayoutBinding(ctypes.Structure):
    """One binding of a shader."""

    _fields_ = layout("u32: binding descriptorType descriptorCount stageFlags *u64: pImmutableSamplers")


class VkDescriptorSetLayoutCreateInfo(Chained):
    """The bindings of a shader."""

    STRUCTURE_TYPE = 32
    _fields_ = layout("u32: flags bindingCount *VkDescriptorSetLayoutBinding: pBindings", VkDescriptorSetLayoutBinding)


class VkDescriptorPoolSize(ctypes.Structure):
    """How many descriptors of a type a pool holds."""

    _fields_ = layout("u32: type descriptorCount")


class VkDescriptorPoolCreateInfo(Chained):
    """The argument of ``vkCreateDescriptorPool``."""

    STRUCTURE_TYPE = 33
    _fields_ = layout("u32: flags maxSets poolSizeCount *VkDescriptorPoolSize: pPoolSizes", VkDescriptorPoolSize)


class VkDescriptorSetAllocateInfo(Chained):
    """The argument of ``vkAllocateDescriptorSets``."""

    STRUCTURE_TYPE = 34
    _fields_ = layout("u64: descriptorPool u32: descriptorSetCount *u64: pSetLayouts")


class VkDescriptorBufferInfo(ctypes.Structure):
    """The range of a buffer that a descriptor names."""

    _fields_ = layout("u64: buffer offset range")


class VkDescriptorImageInfo(ctypes.Structure):
    """The image that a descriptor names."""

    _fields_ = layout("u64: sampler imageView u32: imageLayout")


class VkWriteDescriptorSet(Chained):
    """One descriptor to write."""

    STRUCTURE_TYPE = 35
    _fields_ = layout(
        """
        u64: dstSet u32: dstBinding dstArrayElement descriptorCount descriptorType *VkDescriptorImageInfo: pImageInfo
        *VkDescriptorBufferInfo: pBufferInfo *u64: pTexelBufferView
        """,
        VkDescriptorImageInfo,
        VkDescriptorBufferInfo,
    )


class VkPushConstantRange(ctypes.Structure):
    """The push constants of a pipeline."""

    _fields_ = layout("u32: stageFlags offset size")


class VkPipelineLayoutCreateInfo(Chained):
    """The argument of ``vkCreatePipelineLayout``."""

    STRUCTURE_TYPE = 30
    _fields_ = layout(
        """
        u32: flags setLayoutCount *u64: pSetLayouts u32: pushConstantRangeCount *VkPushConstantRange:
        pPushConstantRanges
        """,
        VkPushConstantRange,
    )


class VkPipelineShaderStageCreateInfo(Chained):
    """The entry point of a pipeline."""

    STRUCTURE_TYPE = 18
    _fields_ = layout("u32: flags stage u64: module text: pName pointer: pSpecializationInfo")


class VkComputePipelineCreateInfo(Chained):
    """The argument of ``vkCreateComputePipelines``."""

    STRUCTURE_TYPE = 29
    _fields_ = layout(
        """
        u32: flags VkPipelineShaderStageCreateInfo: stage u64: layout basePipelineHandle i32: basePipelineIndex
        """,
        VkPipelineShaderStageCreateInfo,
    )
