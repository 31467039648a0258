"""What extensions of vendors report of a device: the units that run workgroups concurrently, and their registers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from landbridge.devices.vulkan import structs_device
from landbridge.devices.vulkan.structure import Chained
from landbridge.records import record


@record(frozen=True)
class _Question:
    """The structure of properties that an extension fills, and the number of units computed from it."""

    structure: type[Chained]
    count: Callable[[Any], int]


_QUESTIONS = {
    "VK_NV_shader_sm_builtins": _Question(
        structs_device.VkPhysicalDeviceShaderSMBuiltinsPropertiesNV, lambda p: p.shaderSMCount
    ),
    "VK_AMD_shader_core_properties": _Question(
        structs_device.VkPhysicalDeviceShaderCorePropertiesAMD,
        lambda p: p.shaderEngineCount * p.shaderArraysPerEngineCount * p.computeUnitsPerShaderArray,
    ),
    "VK_ARM_shader_core_builtins": _Question(
        structs_device.VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM, lambda p: p.shaderCoreCount
    ),
}


def core_count(extensions: Collection[str], fill: Callable[[Chained], None]) -> int | None:
    """Returns the number of units of a device with ``extensions``, None where none of them reports it.

    ``fill`` queries the driver for the properties of a structure.
    """
    for name, question in _QUESTIONS.items():
        if name in extensions:
            properties = question.structure()
            fill(properties)
            count = int(question.count(properties))
            if count > 0:
                return count
    return None


def register_count(extensions: Collection[str], fill: Callable[[Chained], None]) -> int | None:
    """Returns the registers of 32 bits that a workgroup may have, those of one unit; None where nothing reports it.

    ``vgprsPerSimd`` counts registers of a wavefront, each of which has one of 32 bits for each of its invocations.
    """
    if "VK_AMD_shader_core_properties" not in extensions:
        return None
    properties = structs_device.VkPhysicalDeviceShaderCorePropertiesAMD()
    fill(properties)
    return properties.vgprsPerSimd * properties.wavefrontSize * properties.simdPerComputeUnit or None
