"""VkResult: a driver's result codes, and the exception of each error."""

from __future__ import annotations

from landbridge.errors import DeviceError, DeviceLostError, LandbridgeError, OutOfMemoryError

SUCCESS = 0
TIMEOUT = 2
DEVICE_LOST = -4

#: Errors by their code (Vulkan 1.3 specification, section 3.8.3 "Return Codes").
_NAMES = {
    -1: "VK_ERROR_OUT_OF_HOST_MEMORY",
    -2: "VK_ERROR_OUT_OF_DEVICE_MEMORY",
    -3: "VK_ERROR_INITIALIZATION_FAILED",
    DEVICE_LOST: "VK_ERROR_DEVICE_LOST",
    -5: "VK_ERROR_MEMORY_MAP_FAILED",
    -6: "VK_ERROR_LAYER_NOT_PRESENT",
    -7: "VK_ERROR_EXTENSION_NOT_PRESENT",
    -8: "VK_ERROR_FEATURE_NOT_PRESENT",
    -9: "VK_ERROR_INCOMPATIBLE_DRIVER",
    -10: "VK_ERROR_TOO_MANY_OBJECTS",
    -12: "VK_ERROR_FRAGMENTED_POOL",
    -13: "VK_ERROR_UNKNOWN",
    -1000012000: "VK_ERROR_INVALID_SHADER_NV",
    -1000069000: "VK_ERROR_OUT_OF_POOL_MEMORY",
    -1000072003: "VK_ERROR_INVALID_EXTERNAL_HANDLE",
}
_OUT_OF_MEMORY = (-1, -2, -10)


def result_name(result: int) -> str:
    """Returns the name of an error code."""
    return _NAMES.get(result, f"VkResult {result}")


def error_of(result: int, subject: str) -> LandbridgeError:
    """Returns the exception for an error code; ``subject`` says what the driver was called for."""
    text = f"{subject}: the driver answered {result_name(result)}"
    if result == DEVICE_LOST:
        return DeviceLostError(text)
    if result in _OUT_OF_MEMORY:
        return OutOfMemoryError(f"{text}; free tensors or ask for less")
    return DeviceError(text)


def check(result: int, subject: str) -> None:
    """Raises the exception of ``result`` when it is an error."""
    if result < 0:
        raise error_of(result, subject)
