"""Units that run workgroups and their registers, as extensions of vendors say."""

from __future__ import annotations

from typing import Any

from landbridge.devices.vulkan.cores import core_count, register_count


def test_each_extension_says_it_in_its_own_way() -> None:
    def fill(properties: Any) -> None:
        for field, _ in properties._fields_:
            if field not in ("sType", "pNext"):
                setattr(properties, field, 3)

    assert core_count({"VK_NV_shader_sm_builtins"}, fill) == 3
    assert core_count({"VK_AMD_shader_core_properties"}, fill) == 27
    assert core_count({"VK_ARM_shader_core_builtins"}, fill) == 3
    assert core_count({"VK_KHR_maintenance1"}, fill) is None
    assert core_count({"VK_ARM_shader_core_builtins"}, lambda _: None) is None  # a driver that leaves it 0


def test_registers_of_a_unit() -> None:
    def fill(properties: Any) -> None:  # what RADV reports of a Radeon of GCN
        properties.simdPerComputeUnit, properties.wavefrontSize, properties.vgprsPerSimd = 4, 64, 256

    assert register_count({"VK_AMD_shader_core_properties"}, fill) == 65536  # 256 KiB of registers
    assert register_count({"VK_AMD_shader_core_properties"}, lambda _: None) is None
    assert register_count({"VK_NV_shader_sm_builtins"}, fill) is None
