"""The Vulkan functions that Landbridge calls, found through the loader ``libvulkan.so.1``.

A call returns a VkResult to be checked, or None. Blocking calls release the GIL, as every ctypes call does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from landbridge.errors import DeviceError

#: The file names of the loader, in the order in which they are tried.
LOADER_NAMES = ("libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib", "vulkan-1.dll")

_TYPES: dict[str, Any] = {
    "object": ctypes.c_void_p,  # a dispatchable handle: instance, device, queue, command buffer
    "handle": ctypes.c_uint64,  # any other handle
    "struct": ctypes.c_void_p,
    "text": ctypes.c_char_p,
    "u32": ctypes.c_uint32,
    "i32": ctypes.c_int32,
    "u64": ctypes.c_uint64,
    "size": ctypes.c_size_t,
}

_GLOBAL = """
    vkCreateInstance: struct struct struct
"""
_GLOBAL_OPTIONAL = "vkEnumerateInstanceVersion: struct"
_INSTANCE = """
    vkDestroyInstance: object struct -> none
    vkEnumeratePhysicalDevices: object struct struct
    vkGetPhysicalDeviceProperties: object struct -> none
    vkGetPhysicalDeviceProperties2: object struct -> none
    vkGetPhysicalDeviceFeatures2: object struct -> none
    vkGetPhysicalDeviceMemoryProperties: object struct -> none
    vkGetPhysicalDeviceQueueFamilyProperties: object struct struct -> none
    vkGetPhysicalDeviceFormatProperties: object u32 struct -> none
    vkEnumerateDeviceExtensionProperties: object text struct struct
    vkCreateDevice: object struct struct struct
    vkGetDeviceProcAddr: object text -> pointer
"""
_DEVICE = """
    vkDestroyDevice: object struct -> none
    vkDeviceWaitIdle: object
    vkGetDeviceQueue: object u32 u32 struct -> none
    vkQueueSubmit: object u32 struct handle
    vkAllocateMemory: object struct struct struct
    vkFreeMemory: object handle struct -> none
    vkMapMemory: object handle u64 u64 u32 struct
    vkFlushMappedMemoryRanges: object u32 struct
    vkInvalidateMappedMemoryRanges: object u32 struct
    vkCreateBuffer: object struct struct struct
    vkDestroyBuffer: object handle struct -> none
    vkGetBufferMemoryRequirements: object handle struct -> none
    vkBindBufferMemory: object handle handle u64
    vkCreateImage: object struct struct struct
    vkDestroyImage: object handle struct -> none
    vkCreateImageView: object struct struct struct
    vkDestroyImageView: object handle struct -> none
    vkGetImageMemoryRequirements: object handle struct -> none
    vkBindImageMemory: object handle handle u64
    vkCreateSemaphore: object struct struct struct
    vkDestroySemaphore: object handle struct -> none
    vkGetSemaphoreCounterValue: object handle struct
    vkWaitSemaphores: object struct u64
    vkCreateQueryPool: object struct struct struct
    vkDestroyQueryPool: object handle struct -> none
    vkGetQueryPoolResults: object handle u32 u32 size struct u64 u32
    vkCreateCommandPool: object struct struct struct
    vkDestroyCommandPool: object handle struct -> none
    vkAllocateCommandBuffers: object struct struct
    vkBeginCommandBuffer: object struct
    vkEndCommandBuffer: object
    vkCmdCopyBuffer: object handle handle u32 struct -> none
    vkCmdCopyImage: object handle u32 handle u32 u32 struct -> none
    vkCmdCopyBufferToImage: object handle handle u32 u32 struct -> none
    vkCmdCopyImageToBuffer: object handle u32 handle u32 struct -> none
    vkCmdPipelineBarrier: object u32 u32 u32 u32 struct u32 struct u32 struct -> none
    vkCmdResetQueryPool: object handle u32 u32 -> none
    vkCmdWriteTimestamp: object u32 handle u32 -> none
    vkCmdBindPipeline: object u32 handle -> none
    vkCmdBindDescriptorSets: object u32 handle u32 u32 struct u32 struct -> none
    vkCmdPushConstants: object handle u32 u32 u32 struct -> none
    vkCmdDispatch: object u32 u32 u32 -> none
    vkCreateShaderModule: object struct struct struct
    vkDestroyShaderModule: object handle struct -> none
    vkCreateDescriptorSetLayout: object struct struct struct
    vkDestroyDescriptorSetLayout: object handle struct -> none
    vkCreateDescriptorPool: object struct struct struct
    vkDestroyDescriptorPool: object handle struct -> none
    vkAllocateDescriptorSets: object struct struct
    vkUpdateDescriptorSets: object u32 struct u32 struct -> none
    vkCreatePipelineLayout: object struct struct struct
    vkDestroyPipelineLayout: object handle struct -> none
    vkCreateComputePipelines: object handle u32 struct struct struct
    vkCreatePipelineCache: object struct struct struct
    vkDestroyPipelineCache: object handle struct -> none
    vkGetPipelineCacheData: object handle struct struct
    vkDestroyPipeline: object handle struct -> none
"""
_DEVICE_OPTIONAL = """
    vkGetMemoryHostPointerPropertiesEXT: object u32 struct struct
    vkGetMemoryFdKHR: object struct struct
    vkGetMemoryFdPropertiesKHR: object u32 i32 struct
"""


class Calls:
    """Functions as attributes by name; one that the driver does not have raises DeviceError when it is called."""

    def __init__(self) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            return self._functions[name]
        except KeyError:
            raise DeviceError(f"the Vulkan driver has no {name}; install a newer driver") from None

    def replace(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Replace the function ``name`` by ``function``; returns the one before. For tests that observe calls."""
        before: Callable[..., Any] = getattr(self, name)
        self._functions[name] = function
        return before

    def _add(self, table: str, address_of: Callable[[bytes], int | None], *, optional: bool = False) -> None:
        for line in filter(str.strip, table.splitlines()):
            name, _, rest = line.strip().partition(": ")
            arguments, _, result = rest.partition(" -> ")
            address = address_of(name.encode())
            if address:
                self._functions[name] = _prototype(arguments, result)(address)
            elif not optional:
                raise DeviceError(f"the Vulkan loader or driver has no {name}; install a newer one")


class LoaderCalls(Calls):
    """The functions that can be called before there is an instance."""

    def __init__(self, library: ctypes.CDLL) -> None:
        super().__init__()
        self._library = library
        self._address_of = _lookup(library, "vkGetInstanceProcAddr")
        self._add(_GLOBAL, lambda name: self._address_of(None, name))
        self._add(_GLOBAL_OPTIONAL, lambda name: self._address_of(None, name), optional=True)

    def of_instance(self, instance: int) -> Calls:
        """Returns the functions of ``instance`` and its physical devices."""
        calls = Calls()
        calls._add(_INSTANCE, lambda name: self._address_of(instance, name))
        return calls

    def has(self, name: str) -> bool:
        """Returns whether the loader knows ``name``."""
        return name in self._functions


def of_device(instance_calls: Calls, device: int) -> Calls:
    """Returns the functions of the logical ``device``."""
    calls = Calls()
    calls._add(_DEVICE, lambda name: instance_calls.vkGetDeviceProcAddr(device, name))
    calls._add(_DEVICE_OPTIONAL, lambda name: instance_calls.vkGetDeviceProcAddr(device, name), optional=True)
    return calls


def load() -> LoaderCalls:
    """Returns the loader's functions; raises DeviceError, with the remedy, where there is no loader."""
    tried: list[str] = []
    for name in LOADER_NAMES:
        try:
            return LoaderCalls(ctypes.CDLL(name))
        except OSError as error:
            tried.append(str(error))
    raise DeviceError(
        f"no Vulkan loader was found ({tried[0]}); install it (Debian: libvulkan1) and a driver (Debian: "
        "mesa-vulkan-drivers, which has one that runs on every CPU)"
    )


@cache
def _prototype(arguments: str, result: str) -> Any:
    results = {"": ctypes.c_int32, "none": None, "pointer": ctypes.c_void_p}
    return ctypes.CFUNCTYPE(results[result], *(_TYPES[word] for word in arguments.split()))


def _lookup(library: ctypes.CDLL, name: str) -> Callable[[int | None, bytes], int | None]:
    function = getattr(library, name)
    function.restype, function.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
    return function  # type: ignore[no-any-return]
