"""Attributes and Target options from a driver's answers. Nothing here raises for an answer that is missing."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import pyopencl as cl

from landbridge.device.attr import DeviceAttr
from landbridge.devices.opencl.discovery import Found
from landbridge.devices.opencl.image_formats import image_formats

# Vector registers of one work-item, which drivers do not report. 16 is what x86 without AVX-512 has. A work-item of a
# GPU keeps scalars, however wide the vectors that the driver prefers: 64, the same as without an answer.
_REGISTERS = {512: 32}
_FEWEST_REGISTERS = 16
_GPU_ATTRIBUTES = 64

# Queries that pyopencl has no name for.
_SUB_GROUP_SIZES_INTEL = 0x4108  # of cl_intel_required_subgroup_size
_IMAGE_PITCH_ALIGNMENT = 0x104A  # of OpenCL 2.0, in pixels
_WIDEST_PIXEL = 16  # bytes: four lanes of 32 bits


def attribute(device: cl.Device, attr: DeviceAttr) -> object | None:
    """Returns the value of ``attr``; None where the driver has no answer."""
    read = _ATTRS.get(attr)
    try:
        return None if read is None else read(device)
    except cl.Error:
        return None


def target_options(found: Found) -> dict[str, Any]:
    """Returns the options of target kind ``opencl`` that describe ``found``."""
    device = found.device
    bits = 32 * max(1, device.native_vector_width_float)
    return {
        "kind": "opencl",
        "device-class": _device_class(device),
        "opencl-c": _version(device.opencl_c_version),
        "num-cores": max(1, device.max_compute_units),
        "max-workgroup-size": device.max_work_group_size,
        "local-memory-bytes": device.local_mem_size,
        "dedicated-local-memory": device.local_mem_type == cl.device_local_mem_type.LOCAL,
        "vector-bits": bits,
        "vector-registers": _vector_registers(_device_class(device), bits),
        "subgroup-size": _subgroup_size(device),
        "fp16": "cl_khr_fp16" in device.extensions.split(),
        "fp64": "cl_khr_fp64" in device.extensions.split(),
        "images": bool(device.image_support),
        **({"image-width": device.image2d_max_width, "image-height": device.image2d_max_height,
            "image-formats": image_formats(device)} if device.image_support else {}),
        "svm": svm(device),
        "unified-memory": bool(device.host_unified_memory),
        "import-alignment": found.import_alignment,
        "memory-alignment": max(1, device.mem_base_addr_align // 8),
        # A mapping covers exactly the bytes it names (OpenCL 3.0, 5.2.4); the driver handles the cache lines they are
        # in.
        "coherence-granule": 1,
        "max-allocation-bytes": device.max_mem_alloc_size,
        # Of memory shared with the host, drivers report what is free now, which must not be compiled in.
        **({} if device.host_unified_memory else {"memory-bytes": device.global_mem_size}),
    }  # fmt: skip


def svm(device: cl.Device) -> str:
    """Returns the best shared virtual memory that host views can last in: none, coarse, fine or system.

    Where host and device have memories of their own, coarse-grained SVM is a copy on either side, and a driver may move
    all of an allocation whenever a part of it is mapped: what the host wrote under another mapping is lost then, as
    with NVIDIA's driver.
    """
    try:
        granted = device.svm_capabilities
    except cl.Error:  # before OpenCL 2.0
        return "none"
    capabilities = cl.device_svm_capabilities
    if granted & capabilities.FINE_GRAIN_SYSTEM:
        return "system"
    if granted & capabilities.FINE_GRAIN_BUFFER:
        return "fine"
    return "coarse" if granted & capabilities.COARSE_GRAIN_BUFFER and device.host_unified_memory else "none"


def _device_class(device: cl.Device) -> str:
    if device.type & cl.device_type.GPU:
        return "gpu"
    return "cpu" if device.type & cl.device_type.CPU else "accelerator"


def _vector_registers(device_class: str, vector_bits: int) -> int:
    """Returns how many vectors of ``vector_bits`` a work-item keeps, at least the least of target kind ``opencl``."""
    if device_class == "gpu":
        return max(4, _GPU_ATTRIBUTES * 32 // vector_bits)
    return _REGISTERS.get(vector_bits, _FEWEST_REGISTERS)


def _version(text: str) -> int:
    """Returns ``OpenCL C 1.2 ...`` as 120."""
    match = re.search(r"(\d+)\.(\d+)", text)
    return int(match[1]) * 100 + int(match[2]) * 10 if match else 100


def _subgroup_size(device: cl.Device) -> int:
    """Returns the widest subgroup that a kernel may require, 0 where the driver has no answer."""
    if "cl_intel_required_subgroup_size" not in device.extensions.split():
        return 0
    return max(_numbers(device, _SUB_GROUP_SIZES_INTEL, ctypes.c_size_t), default=0)


def _numbers(device: cl.Device, query: int, number: type[ctypes.c_size_t] | type[ctypes.c_uint32]) -> list[int]:
    """Returns the answer to a query that pyopencl has no name for; none where the driver does not know it."""
    ask = ctypes.CDLL(cl._cl.__file__).clGetDeviceInfo  # the import also brings the loader that pyopencl uses
    found, written = (number * 16)(), ctypes.c_size_t()
    ask.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
    status = ask(device.int_ptr, query, ctypes.sizeof(found), found, ctypes.byref(written))
    return [] if status else list(found[: written.value // ctypes.sizeof(number)])


def _lockstep(device: cl.Device) -> int | None:
    """Returns how many work-items run in step, by the extension of its vendor."""
    extensions = device.extensions.split()
    if "cl_nv_device_attribute_query" in extensions:
        return int(device.warp_size_nv) or None
    if "cl_amd_device_attribute_query" in extensions:
        return int(device.wavefront_width_amd) or None
    return _subgroup_size(device) or None


def _api_version(device: cl.Device) -> str | None:
    """Returns ``3.0`` of ``OpenCL 3.0 PoCL``."""
    match = re.match(r"OpenCL (\d+\.\d+)", device.version)
    return match[1] if match else None


def _registers(device: cl.Device) -> int | None:
    if "cl_nv_device_attribute_query" not in device.extensions.split():
        return None
    return int(device.registers_per_block_nv) or None


def _image_pitch(device: cl.Device) -> int | None:
    """Returns the alignment of a pitch in bytes, for the widest pixels."""
    (pixels,) = _numbers(device, _IMAGE_PITCH_ALIGNMENT, ctypes.c_uint32) or [0]
    return pixels * _WIDEST_PIXEL or None


_ATTRS: dict[DeviceAttr, Callable[[cl.Device], object]] = {
    DeviceAttr.PRODUCT_NAME: lambda device: device.name.strip(),
    DeviceAttr.VENDOR: lambda device: device.vendor,
    DeviceAttr.DRIVER_VERSION: lambda device: f"{device.platform.name} {device.driver_version}",
    DeviceAttr.API_VERSION: _api_version,
    DeviceAttr.COMPUTE_UNITS: lambda device: device.max_compute_units,
    DeviceAttr.MAX_THREADS_PER_BLOCK: lambda device: device.max_work_group_size,
    DeviceAttr.MAX_BLOCK_DIMENSIONS: lambda device: tuple(
        min(each, device.max_work_group_size) for each in device.max_work_item_sizes[:3]
    ),
    DeviceAttr.SUBGROUP_SIZE: _lockstep,
    DeviceAttr.LOCAL_MEMORY_BYTES: lambda device: device.local_mem_size or None,
    DeviceAttr.REGISTERS_PER_BLOCK: _registers,
    DeviceAttr.IMAGE_PITCH_BYTES: _image_pitch,
    DeviceAttr.MAX_CLOCK_HZ: lambda device: device.max_clock_frequency * 1_000_000 or None,
    DeviceAttr.TOTAL_MEMORY: lambda device: device.global_mem_size,
    DeviceAttr.CACHE_LINE_BYTES: lambda device: device.global_mem_cacheline_size or None,
    DeviceAttr.FEATURES: lambda device: tuple(sorted(device.extensions.split())),
}
