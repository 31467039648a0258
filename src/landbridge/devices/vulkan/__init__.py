"""The Vulkan device, by ctypes over the loader: it needs a driver, but no package."""

from __future__ import annotations

from landbridge.devices.vulkan.api import VulkanDeviceAPI

__all__ = ["VulkanDeviceAPI"]
