"""Structures, enumerators and calls against the C header: the compiler says where each field lies."""

from __future__ import annotations

import ctypes
import inspect
import re
import subprocess
from pathlib import Path

from landbridge.devices.vulkan import flags, images, structs_device, structs_image, structs_work
from landbridge.devices.vulkan.structure import Chained, array, layout
from landbridge.executable.spirv import IMAGE_FORMATS
from tests.selection.installed import missing, program

_HEADER = Path("/usr/include/vulkan/vulkan_core.h")

#: Names of ours, and what the header calls the same number.
_ENUMERATORS = {
    "API_1_2": "VK_API_VERSION_1_2",
    "MEMORY_DEVICE_LOCAL": "VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT",
    "MEMORY_HOST_VISIBLE": "VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT",
    "MEMORY_HOST_COHERENT": "VK_MEMORY_PROPERTY_HOST_COHERENT_BIT",
    "MEMORY_HOST_CACHED": "VK_MEMORY_PROPERTY_HOST_CACHED_BIT",
    "HEAP_DEVICE_LOCAL": "VK_MEMORY_HEAP_DEVICE_LOCAL_BIT",
    "QUEUE_COMPUTE": "VK_QUEUE_COMPUTE_BIT",
    "BUFFER_USAGE": " | ".join(
        f"VK_BUFFER_USAGE_{use}_BIT" for use in ("TRANSFER_SRC", "TRANSFER_DST", "STORAGE_BUFFER")
    ),
    "HANDLE_HOST_ALLOCATION": "VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT",
    "HANDLE_DMA_BUF": "VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT",
    "COMMAND_POOL_RESET": "VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT",
    "COMMAND_ONE_TIME": "VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT",
    "COMMAND_SIMULTANEOUS": "VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT",
    "STAGE_COMPUTE": "VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT",
    "STAGE_TRANSFER": "VK_PIPELINE_STAGE_TRANSFER_BIT",
    "STAGE_BOTTOM": "VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT",
    "STAGE_HOST": "VK_PIPELINE_STAGE_HOST_BIT",
    "STAGE_ALL": "VK_PIPELINE_STAGE_ALL_COMMANDS_BIT",
    "ACCESS_HOST_READ": "VK_ACCESS_HOST_READ_BIT",
    "ACCESS_HOST_WRITE": "VK_ACCESS_HOST_WRITE_BIT",
    "ACCESS_READ": "VK_ACCESS_MEMORY_READ_BIT",
    "ACCESS_WRITE": "VK_ACCESS_MEMORY_WRITE_BIT",
    "SEMAPHORE_TIMELINE": "VK_SEMAPHORE_TYPE_TIMELINE",
    "QUERY_TIMESTAMP": "VK_QUERY_TYPE_TIMESTAMP",
    "QUERY_RESULT_64": "VK_QUERY_RESULT_64_BIT",
    "DESCRIPTOR_STORAGE_BUFFER": "VK_DESCRIPTOR_TYPE_STORAGE_BUFFER",
    "SHADER_STAGE_COMPUTE": "VK_SHADER_STAGE_COMPUTE_BIT",
    "BIND_POINT_COMPUTE": "VK_PIPELINE_BIND_POINT_COMPUTE",
    "WHOLE_SIZE": "VK_WHOLE_SIZE",
    "IMAGE_2D": "VK_IMAGE_TYPE_2D",
    "IMAGE_SAMPLES_1": "VK_SAMPLE_COUNT_1_BIT",
    "IMAGE_TRANSFER": "VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT",
    "IMAGE_SAMPLED": "VK_IMAGE_USAGE_SAMPLED_BIT",
    "IMAGE_STORAGE": "VK_IMAGE_USAGE_STORAGE_BIT",
    "IMAGE_LAYOUT_GENERAL": "VK_IMAGE_LAYOUT_GENERAL",
    "IMAGE_ASPECT_COLOR": "VK_IMAGE_ASPECT_COLOR_BIT",
    "FORMAT_SAMPLED": "VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT",
    "FORMAT_STORAGE": "VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT",
    "FORMAT_TRANSFER": "VK_FORMAT_FEATURE_TRANSFER_SRC_BIT | VK_FORMAT_FEATURE_TRANSFER_DST_BIT",
    "QUEUE_FAMILY_IGNORED": "VK_QUEUE_FAMILY_IGNORED",
}


def header() -> str:
    """The C header."""
    return _HEADER.read_text() if _HEADER.exists() else missing("vulkan_core.h", "debian")


def test_layouts_and_numbers_are_those_of_the_header(tmp_path: Path) -> None:
    compiler, _ = program("cc", "debian"), header()
    structures = {
        name: of
        for module in (structs_device, structs_image, structs_work)
        for name, of in inspect.getmembers(module, inspect.isclass)
        if issubclass(of, ctypes.Structure) and name.startswith("Vk")
    }
    assert len(structures) > 40
    lines, wanted = [], {}
    for name, of in structures.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        wanted[name] = ctypes.sizeof(of)
        for field in [entry[0] for base in reversed(of.__mro__) for entry in vars(base).get("_fields_", ())]:
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
            wanted[f"{name}.{field}"] = getattr(of, field).offset
        if issubclass(of, Chained):
            lines.append(f'printf("{name}:type %u\\n", (unsigned){_type_name(name)});')
            wanted[f"{name}:type"] = of.STRUCTURE_TYPE
    for ours, theirs in _ENUMERATORS.items():
        lines.append(f'printf("{ours} %llu\\n", (unsigned long long)({theirs}));')
        wanted[ours] = getattr(flags, ours)
    source = tmp_path / "layouts.c"
    body = "\n".join(lines)
    source.write_text(
        f"#include <stddef.h>\n#include <stdio.h>\n#include <vulkan/vulkan_core.h>\nint main(void) {{\n{body}\n}}\n"
    )
    measuring = tmp_path / "layouts"
    subprocess.run([compiler, "-o", measuring, source], check=True)
    printed = subprocess.run([measuring], check=True, capture_output=True, text=True).stdout
    found = {name: int(number) for name, number in (line.split() for line in printed.splitlines())}
    assert found == wanted


def test_formats_are_those_of_the_header() -> None:
    values = dict(re.findall(r"(VK_FORMAT_\w+) = (\d+),", header()))
    assert images._FORMATS.keys() == {*IMAGE_FORMATS.values()}
    for (itemsize, lanes), format in IMAGE_FORMATS.items():
        name = "".join(f"{lane}{8 * itemsize}" for lane in "RGBA"[:lanes])
        assert int(values[f"VK_FORMAT_{name}_UINT"]) == images._FORMATS[format]


def _type_name(structure: str) -> str:
    """``VK_STRUCTURE_TYPE_...`` of a structure, as the header spells it."""
    text = _HEADER.read_text()
    plain = structure.removeprefix("Vk").upper()
    for word in set(text.split()):
        if word.startswith("VK_STRUCTURE_TYPE_") and word.removeprefix("VK_STRUCTURE_TYPE_").replace("_", "") == plain:
            return word
    raise AssertionError(f"the header has no type of {structure}")


def test_a_chain_keeps_what_it_points_to() -> None:
    def chain() -> structs_device.VkPhysicalDeviceFeatures2:
        last = structs_device.VkPhysicalDeviceVulkan12Features(shaderInt8=1)
        return structs_device.VkPhysicalDeviceFeatures2(structs_device.VkPhysicalDeviceVulkan11Features(last))

    head = chain()
    junk = [ctypes.create_string_buffer(200) for _ in range(100)]
    middle = structs_device.VkPhysicalDeviceVulkan11Features.from_address(head.pNext)
    last = structs_device.VkPhysicalDeviceVulkan12Features.from_address(middle.pNext)
    assert (middle.sType, last.sType, last.shaderInt8) == (49, 51, 1)
    assert junk


def test_layout_reads_types_arrays_and_pointers() -> None:
    class Point(ctypes.Structure):
        _fields_ = layout("u32: x y[3] *u64: many")

    fields = [(name, kind) for name, kind in Point._fields_]
    assert fields == [
        ("x", ctypes.c_uint32),
        ("y", ctypes.c_uint32 * 3),
        ("many", ctypes.POINTER(ctypes.c_uint64)),
    ]
    assert list(array(ctypes.c_uint32, (1, 2))) == [1, 2]
