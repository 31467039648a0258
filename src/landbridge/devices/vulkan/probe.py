"""A probe of a device that was just opened, as a driver may list one that does not work."""

from __future__ import annotations

import ctypes

from landbridge.devices.vulkan.allocation import allocate
from landbridge.devices.vulkan.copies import Copy, copy_from_host, copy_to_host
from landbridge.devices.vulkan.logical_device import LogicalDevice
from landbridge.devices.vulkan.steps import MemoryLocation
from landbridge.errors import DeviceError
from landbridge.memory_kind import GLOBAL_SCOPE

_BYTES = 256


def probe(device: LogicalDevice) -> None:
    """Copy a few bytes to the device and back; raises DeviceError when they differ."""
    sent = ctypes.create_string_buffer(bytes(range(_BYTES)), _BYTES)
    got = ctypes.create_string_buffer(_BYTES)
    spaces = [allocate(device, device.scopes[GLOBAL_SCOPE], _BYTES, 1) for _ in range(2)]
    first, second = (MemoryLocation(space, 0) for space in spaces)
    try:
        copy_from_host(device, device.stream, ctypes.addressof(sent), first, _BYTES)
        device.submit(device.stream, [Copy(first, second, _BYTES)])
        copy_to_host(device, device.stream, second, ctypes.addressof(got), _BYTES)
    finally:
        for space in spaces:
            space.free()
    if got.raw != sent.raw:
        raise DeviceError(
            f"{device.name} ({device.physical.name}, {device.physical.driver}) is listed by its driver, and bytes "
            "copied on it come back changed; update the driver"
        )
