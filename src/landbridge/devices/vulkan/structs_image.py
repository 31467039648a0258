"""The structures of images and copies of them, named and laid out as in vulkan_core.h (Vulkan 1.3)."""

from __future__ import annotations

import ctypes

from landbridge.devices.vulkan.structs_device import VkExtent3D
from landbridge.devices.vulkan.structure import Chained, layout


class VkFormatProperties(ctypes.Structure):
    """What images of a format can be used for."""

    _fields_ = layout("u32: linearTilingFeatures optimalTilingFeatures bufferFeatures")


class VkImageCreateInfo(Chained):
    """The argument of ``vkCreateImage``."""

    STRUCTURE_TYPE = 14
    _fields_ = layout(
        """
        u32: flags imageType format VkExtent3D: extent u32: mipLevels arrayLayers samples tiling usage
        sharingMode queueFamilyIndexCount *u32: pQueueFamilyIndices u32: initialLayout
        """,
        VkExtent3D,
    )


class VkImageSubresourceRange(ctypes.Structure):
    """The whole of an image."""

    _fields_ = layout("u32: aspectMask baseMipLevel levelCount baseArrayLayer layerCount")


class VkImageViewCreateInfo(Chained):
    """The argument of ``vkCreateImageView``; ``components`` of 0 keep the order of lanes."""

    STRUCTURE_TYPE = 15
    _fields_ = layout(
        """
        u32: flags u64: image u32: viewType format components[4] VkImageSubresourceRange: subresourceRange
        """,
        VkImageSubresourceRange,
    )


class VkImageMemoryBarrier(Chained):
    """A barrier that changes the layout of an image."""

    STRUCTURE_TYPE = 45
    _fields_ = layout(
        """
        u32: srcAccessMask dstAccessMask oldLayout newLayout srcQueueFamilyIndex dstQueueFamilyIndex u64: image
        VkImageSubresourceRange: subresourceRange
        """,
        VkImageSubresourceRange,
    )


class VkImageSubresourceLayers(ctypes.Structure):
    """The one layer that images here have."""

    _fields_ = layout("u32: aspectMask mipLevel baseArrayLayer layerCount")


class VkOffset3D(ctypes.Structure):
    """The pixel at which a block of them begins."""

    _fields_ = layout("i32: x y z")


class VkBufferImageCopy(ctypes.Structure):
    """Pixels to copy between a buffer and an image."""

    _fields_ = layout(
        """
        u64: bufferOffset u32: bufferRowLength bufferImageHeight VkImageSubresourceLayers: imageSubresource
        VkOffset3D: imageOffset VkExtent3D: imageExtent
        """,
        VkImageSubresourceLayers,
        VkOffset3D,
        VkExtent3D,
    )


class VkImageCopy(ctypes.Structure):
    """Pixels to copy between two images."""

    _fields_ = layout(
        """
        VkImageSubresourceLayers: srcSubresource VkOffset3D: srcOffset VkImageSubresourceLayers: dstSubresource
        VkOffset3D: dstOffset VkExtent3D: extent
        """,
        VkImageSubresourceLayers,
        VkOffset3D,
        VkExtent3D,
    )
