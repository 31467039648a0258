"""The structures that describe and open a device, named and laid out as in vulkan_core.h (Vulkan 1.3)."""

from __future__ import annotations

import ctypes

from landbridge.devices.vulkan.structure import Chained, layout


class VkApplicationInfo(Chained):
    """The application's name, and the version of Vulkan that it needs."""

    STRUCTURE_TYPE = 0
    _fields_ = layout("text: pApplicationName u32: applicationVersion text: pEngineName u32: engineVersion apiVersion")


class VkInstanceCreateInfo(Chained):
    """The argument of ``vkCreateInstance``."""

    STRUCTURE_TYPE = 1
    _fields_ = layout(
        """
        u32: flags *VkApplicationInfo: pApplicationInfo u32: enabledLayerCount *text: ppEnabledLayerNames u32:
        enabledExtensionCount *text: ppEnabledExtensionNames
        """,
        VkApplicationInfo,
    )


class VkExtensionProperties(ctypes.Structure):
    """One extension that is available."""

    _fields_ = layout("char: extensionName[256] u32: specVersion")


class VkPhysicalDeviceLimits(ctypes.Structure):
    """The limits that every device reports."""

    _fields_ = layout(
        """
        u32: maxImageDimension1D maxImageDimension2D maxImageDimension3D maxImageDimensionCube
        maxImageArrayLayers maxTexelBufferElements maxUniformBufferRange maxStorageBufferRange
        maxPushConstantsSize maxMemoryAllocationCount maxSamplerAllocationCount u64: bufferImageGranularity
        sparseAddressSpaceSize u32: maxBoundDescriptorSets maxPerStageDescriptorSamplers
        maxPerStageDescriptorUniformBuffers maxPerStageDescriptorStorageBuffers
        maxPerStageDescriptorSampledImages maxPerStageDescriptorStorageImages
        maxPerStageDescriptorInputAttachments maxPerStageResources maxDescriptorSetSamplers
        maxDescriptorSetUniformBuffers maxDescriptorSetUniformBuffersDynamic maxDescriptorSetStorageBuffers
        maxDescriptorSetStorageBuffersDynamic maxDescriptorSetSampledImages maxDescriptorSetStorageImages
        maxDescriptorSetInputAttachments maxVertexInputAttributes maxVertexInputBindings
        maxVertexInputAttributeOffset maxVertexInputBindingStride maxVertexOutputComponents
        maxTessellationGenerationLevel maxTessellationPatchSize maxTessellationControlPerVertexInputComponents
        maxTessellationControlPerVertexOutputComponents maxTessellationControlPerPatchOutputComponents
        maxTessellationControlTotalOutputComponents maxTessellationEvaluationInputComponents
        maxTessellationEvaluationOutputComponents maxGeometryShaderInvocations maxGeometryInputComponents
        maxGeometryOutputComponents maxGeometryOutputVertices maxGeometryTotalOutputComponents
        maxFragmentInputComponents maxFragmentOutputAttachments maxFragmentDualSrcAttachments
        maxFragmentCombinedOutputResources maxComputeSharedMemorySize maxComputeWorkGroupCount[3]
        maxComputeWorkGroupInvocations maxComputeWorkGroupSize[3] subPixelPrecisionBits subTexelPrecisionBits
        mipmapPrecisionBits maxDrawIndexedIndexValue maxDrawIndirectCount f32: maxSamplerLodBias
        maxSamplerAnisotropy u32: maxViewports maxViewportDimensions[2] f32: viewportBoundsRange[2] u32:
        viewportSubPixelBits size: minMemoryMapAlignment u64: minTexelBufferOffsetAlignment
        minUniformBufferOffsetAlignment minStorageBufferOffsetAlignment i32: minTexelOffset u32: maxTexelOffset
        i32: minTexelGatherOffset u32: maxTexelGatherOffset f32: minInterpolationOffset maxInterpolationOffset
        u32: subPixelInterpolationOffsetBits maxFramebufferWidth maxFramebufferHeight maxFramebufferLayers
        framebufferColorSampleCounts framebufferDepthSampleCounts framebufferStencilSampleCounts
        framebufferNoAttachmentsSampleCounts maxColorAttachments sampledImageColorSampleCounts
        sampledImageIntegerSampleCounts sampledImageDepthSampleCounts sampledImageStencilSampleCounts
        storageImageSampleCounts maxSampleMaskWords timestampComputeAndGraphics f32: timestampPeriod u32:
        maxClipDistances maxCullDistances maxCombinedClipAndCullDistances discreteQueuePriorities f32:
        pointSizeRange[2] lineWidthRange[2] pointSizeGranularity lineWidthGranularity u32: strictLines
        standardSampleLocations u64: optimalBufferCopyOffsetAlignment optimalBufferCopyRowPitchAlignment
        nonCoherentAtomSize
        """
    )


class VkPhysicalDeviceSparseProperties(ctypes.Structure):
    """Not used; part of the layout of the properties."""

    _fields_ = layout(
        """
        u32: residencyStandard2DBlockShape residencyStandard2DMultisampleBlockShape
        residencyStandard3DBlockShape residencyAlignedMipSize residencyNonResidentStrict
        """
    )


class VkPhysicalDeviceProperties(ctypes.Structure):
    """Name, version and limits."""

    _fields_ = layout(
        """
        u32: apiVersion driverVersion vendorID deviceID deviceType char: deviceName[256] u8:
        pipelineCacheUUID[16] VkPhysicalDeviceLimits: limits VkPhysicalDeviceSparseProperties: sparseProperties
        """,
        VkPhysicalDeviceLimits,
        VkPhysicalDeviceSparseProperties,
    )


class VkPhysicalDeviceProperties2(Chained):
    """The head of a chain of properties."""

    STRUCTURE_TYPE = 1000059001
    _fields_ = layout("VkPhysicalDeviceProperties: properties", VkPhysicalDeviceProperties)


class VkPhysicalDeviceVulkan11Properties(Chained):
    """Properties of Vulkan 1.1: subgroups, the largest allocation."""

    STRUCTURE_TYPE = 50
    _fields_ = layout(
        """
        u8: deviceUUID[16] driverUUID[16] deviceLUID[8] u32: deviceNodeMask deviceLUIDValid subgroupSize
        subgroupSupportedStages subgroupSupportedOperations subgroupQuadOperationsInAllStages
        pointClippingBehavior maxMultiviewViewCount maxMultiviewInstanceIndex protectedNoFault
        maxPerSetDescriptors u64: maxMemoryAllocationSize
        """
    )


class VkPhysicalDeviceDriverProperties(Chained):
    """The driver's name and version in words."""

    STRUCTURE_TYPE = 1000196000
    _fields_ = layout("u32: driverID char: driverName[256] driverInfo[256] u8: conformanceVersion[4]")


class VkPhysicalDeviceFloatControlsProperties(Chained):
    """The properties of float arithmetic."""

    STRUCTURE_TYPE = 1000197000
    _fields_ = layout(
        """
        u32: denormBehaviorIndependence roundingModeIndependence shaderSignedZeroInfNanPreserveFloat16
        shaderSignedZeroInfNanPreserveFloat32 shaderSignedZeroInfNanPreserveFloat64 shaderDenormPreserveFloat16
        shaderDenormPreserveFloat32 shaderDenormPreserveFloat64 shaderDenormFlushToZeroFloat16
        shaderDenormFlushToZeroFloat32 shaderDenormFlushToZeroFloat64 shaderRoundingModeRTEFloat16
        shaderRoundingModeRTEFloat32 shaderRoundingModeRTEFloat64 shaderRoundingModeRTZFloat16
        shaderRoundingModeRTZFloat32 shaderRoundingModeRTZFloat64
        """
    )


class VkPhysicalDeviceExternalMemoryHostPropertiesEXT(Chained):
    """The alignment that VK_EXT_external_memory_host requires of an address."""

    STRUCTURE_TYPE = 1000178002
    _fields_ = layout("u64: minImportedHostPointerAlignment")


class VkPhysicalDeviceShaderSMBuiltinsPropertiesNV(Chained):
    """The number of units that run workgroups, from VK_NV_shader_sm_builtins."""

    STRUCTURE_TYPE = 1000154001
    _fields_ = layout("u32: shaderSMCount shaderWarpsPerSM")


class VkPhysicalDeviceShaderCorePropertiesAMD(Chained):
    """The number of units that run workgroups, from VK_AMD_shader_core_properties."""

    STRUCTURE_TYPE = 1000185000
    _fields_ = layout(
        "u32: shaderEngineCount shaderArraysPerEngineCount computeUnitsPerShaderArray simdPerComputeUnit"
        " wavefrontsPerSimd wavefrontSize sgprsPerSimd minSgprAllocation maxSgprAllocation sgprAllocationGranularity"
        " vgprsPerSimd minVgprAllocation maxVgprAllocation vgprAllocationGranularity"
    )


class VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM(Chained):
    """The number of units that run workgroups, from VK_ARM_shader_core_builtins."""

    STRUCTURE_TYPE = 1000497001
    _fields_ = layout("u64: shaderCoreMask u32: shaderCoreCount shaderWarpsPerCore")


class VkMemoryType(ctypes.Structure):
    """One memory type: its properties, and the heap it lies in."""

    _fields_ = layout("u32: propertyFlags heapIndex")


class VkMemoryHeap(ctypes.Structure):
    """One heap."""

    _fields_ = layout("u64: size u32: flags")


class VkPhysicalDeviceMemoryProperties(ctypes.Structure):
    """All memory types and heaps."""

    _fields_ = layout(
        """
        u32: memoryTypeCount VkMemoryType: memoryTypes[32] u32: memoryHeapCount VkMemoryHeap: memoryHeaps[16]
        """,
        VkMemoryType,
        VkMemoryHeap,
    )


class VkExtent3D(ctypes.Structure):
    """Part of the layout of queue families."""

    _fields_ = layout("u32: width height depth")


class VkQueueFamilyProperties(ctypes.Structure):
    """A family of queues: what they do, how many there are."""

    _fields_ = layout(
        """
        u32: queueFlags queueCount timestampValidBits VkExtent3D: minImageTransferGranularity
        """,
        VkExtent3D,
    )


class VkPhysicalDeviceFeatures(ctypes.Structure):
    """Features of Vulkan 1.0."""

    _fields_ = layout(
        """
        u32: robustBufferAccess fullDrawIndexUint32 imageCubeArray independentBlend geometryShader
        tessellationShader sampleRateShading dualSrcBlend logicOp multiDrawIndirect drawIndirectFirstInstance
        depthClamp depthBiasClamp fillModeNonSolid depthBounds wideLines largePoints alphaToOne multiViewport
        samplerAnisotropy textureCompressionETC2 textureCompressionASTC_LDR textureCompressionBC
        occlusionQueryPrecise pipelineStatisticsQuery vertexPipelineStoresAndAtomics fragmentStoresAndAtomics
        shaderTessellationAndGeometryPointSize shaderImageGatherExtended shaderStorageImageExtendedFormats
        shaderStorageImageMultisample shaderStorageImageReadWithoutFormat shaderStorageImageWriteWithoutFormat
        shaderUniformBufferArrayDynamicIndexing shaderSampledImageArrayDynamicIndexing
        shaderStorageBufferArrayDynamicIndexing shaderStorageImageArrayDynamicIndexing shaderClipDistance
        shaderCullDistance shaderFloat64 shaderInt64 shaderInt16 shaderResourceResidency shaderResourceMinLod
        sparseBinding sparseResidencyBuffer sparseResidencyImage2D sparseResidencyImage3D
        sparseResidency2Samples sparseResidency4Samples sparseResidency8Samples sparseResidency16Samples
        sparseResidencyAliased variableMultisampleRate inheritedQueries
        """
    )


class VkPhysicalDeviceFeatures2(Chained):
    """The head of a chain of features."""

    STRUCTURE_TYPE = 1000059000
    _fields_ = layout("VkPhysicalDeviceFeatures: features", VkPhysicalDeviceFeatures)


class VkPhysicalDeviceVulkan11Features(Chained):
    """Features of Vulkan 1.1."""

    STRUCTURE_TYPE = 49
    _fields_ = layout(
        """
        u32: storageBuffer16BitAccess uniformAndStorageBuffer16BitAccess storagePushConstant16
        storageInputOutput16 multiview multiviewGeometryShader multiviewTessellationShader
        variablePointersStorageBuffer variablePointers protectedMemory samplerYcbcrConversion
        shaderDrawParameters
        """
    )


class VkPhysicalDeviceVulkan12Features(Chained):
    """Features of Vulkan 1.2."""

    STRUCTURE_TYPE = 51
    _fields_ = layout(
        """
        u32: samplerMirrorClampToEdge drawIndirectCount storageBuffer8BitAccess
        uniformAndStorageBuffer8BitAccess storagePushConstant8 shaderBufferInt64Atomics shaderSharedInt64Atomics
        shaderFloat16 shaderInt8 descriptorIndexing shaderInputAttachmentArrayDynamicIndexing
        shaderUniformTexelBufferArrayDynamicIndexing shaderStorageTexelBufferArrayDynamicIndexing
        shaderUniformBufferArrayNonUniformIndexing shaderSampledImageArrayNonUniformIndexing
        shaderStorageBufferArrayNonUniformIndexing shaderStorageImageArrayNonUniformIndexing
        shaderInputAttachmentArrayNonUniformIndexing shaderUniformTexelBufferArrayNonUniformIndexing
        shaderStorageTexelBufferArrayNonUniformIndexing descriptorBindingUniformBufferUpdateAfterBind
        descriptorBindingSampledImageUpdateAfterBind descriptorBindingStorageImageUpdateAfterBind
        descriptorBindingStorageBufferUpdateAfterBind descriptorBindingUniformTexelBufferUpdateAfterBind
        descriptorBindingStorageTexelBufferUpdateAfterBind descriptorBindingUpdateUnusedWhilePending
        descriptorBindingPartiallyBound descriptorBindingVariableDescriptorCount runtimeDescriptorArray
        samplerFilterMinmax scalarBlockLayout imagelessFramebuffer uniformBufferStandardLayout
        shaderSubgroupExtendedTypes separateDepthStencilLayouts hostQueryReset timelineSemaphore
        bufferDeviceAddress bufferDeviceAddressCaptureReplay bufferDeviceAddressMultiDevice vulkanMemoryModel
        vulkanMemoryModelDeviceScope vulkanMemoryModelAvailabilityVisibilityChains shaderOutputViewportIndex
        shaderOutputLayer subgroupBroadcastDynamicId
        """
    )


class VkDeviceQueueCreateInfo(Chained):
    """Queues to open."""

    STRUCTURE_TYPE = 2
    _fields_ = layout("u32: flags queueFamilyIndex queueCount *f32: pQueuePriorities")


class VkDeviceCreateInfo(Chained):
    """The argument of ``vkCreateDevice``."""

    STRUCTURE_TYPE = 3
    _fields_ = layout(
        """
        u32: flags queueCreateInfoCount *VkDeviceQueueCreateInfo: pQueueCreateInfos u32: enabledLayerCount
        *text: ppEnabledLayerNames u32: enabledExtensionCount *text: ppEnabledExtensionNames
        *VkPhysicalDeviceFeatures: pEnabledFeatures
        """,
        VkDeviceQueueCreateInfo,
        VkPhysicalDeviceFeatures,
    )
