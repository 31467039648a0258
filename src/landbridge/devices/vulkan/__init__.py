"""The Vulkan device, by ctypes over the loader: no package is needed, a driver is."""

from __future__ import annotations

from landbridge.devices.vulkan.api import VulkanDeviceAPI

__all__ = ["VulkanDeviceAPI"]
