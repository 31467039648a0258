"""VulkanInstance: the connection to the Vulkan loader, and the devices of its drivers."""

from __future__ import annotations

import ctypes
from weakref import finalize

from landbridge.devices.vulkan import calls, flags, structs_device
from landbridge.devices.vulkan.physical_device import PhysicalDevice, describe, version_text
from landbridge.devices.vulkan.result import check, result_name
from landbridge.errors import DeviceError

_INCOMPATIBLE_DRIVER = -9
_DRIVERLESS = (
    "no Vulkan driver finds a device; install the one of your GPU, or one that runs on every CPU (Debian: "
    "mesa-vulkan-drivers)"
)


class VulkanInstance:
    """An open connection. ``devices`` are usable, real GPUs before CPUs; ``diagnostics`` say what was passed over.

    The constructor raises DeviceError where there is no loader, or none of version 1.2.
    """

    def __init__(self) -> None:
        loader = calls.load()
        version = ctypes.c_uint32(1 << 22)
        if loader.has("vkEnumerateInstanceVersion"):
            check(loader.vkEnumerateInstanceVersion(ctypes.byref(version)), "asking the Vulkan loader for its version")
        if version.value < flags.API_1_2:
            raise DeviceError(
                f"the Vulkan loader has version {version_text(version.value)}, and 1.2 is needed; install a newer one"
            )
        self.handle = _create(loader)
        self.devices: list[PhysicalDevice] = []
        self.diagnostics: list[str] = []
        if self.handle is None:
            self.diagnostics.append(_DRIVERLESS)
            return
        self.calls = loader.of_instance(self.handle)
        # Devices refer to this object, so they end first; at the interpreter's end the driver may be gone already.
        finalize(self, self.calls.vkDestroyInstance, self.handle, None).atexit = False
        self._look()

    def _look(self) -> None:
        count = ctypes.c_uint32()
        check(self.calls.vkEnumeratePhysicalDevices(self.handle, ctypes.byref(count), None), "listing Vulkan devices")
        found = (ctypes.c_void_p * count.value)()
        check(self.calls.vkEnumeratePhysicalDevices(self.handle, ctypes.byref(count), found), "listing Vulkan devices")
        every = [describe(self.calls, handle) for handle in found if handle]
        self.devices = sorted((d for d in every if d.refusal is None), key=lambda d: d.device_type == "CPU")
        self.diagnostics += [f"{device.name} is not used: {device.refusal}" for device in every if device.refusal]
        if not every:
            self.diagnostics.append(_DRIVERLESS)


def _create(loader: calls.LoaderCalls) -> int | None:
    """Returns a new instance; None where the loader has no driver."""
    application = structs_device.VkApplicationInfo(pApplicationName=b"landbridge", apiVersion=flags.API_1_2)
    request = structs_device.VkInstanceCreateInfo(pApplicationInfo=ctypes.pointer(application))
    handle = ctypes.c_void_p()
    result = loader.vkCreateInstance(ctypes.byref(request), None, ctypes.byref(handle))
    if result == _INCOMPATIBLE_DRIVER:
        return None
    if result < 0:
        raise DeviceError(f"the Vulkan loader does not open: {result_name(result)}; {_DRIVERLESS}")
    return handle.value
