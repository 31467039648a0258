"""DeviceAttr: attributes that every device can be queried for; None is always a legal value."""

from __future__ import annotations

from enum import Enum


class DeviceAttr(Enum):
    """One attribute of a device. The line below each gives the type and unit of its value."""

    PRODUCT_NAME = "product_name"
    """str"""
    VENDOR = "vendor"
    """str"""
    DRIVER_VERSION = "driver_version"
    """str"""
    API_VERSION = "api_version"
    """str: the version of the interface to the driver, such as 1.3.230"""
    COMPUTE_UNITS = "compute_units"
    """int: cores, multiprocessors"""
    MAX_THREADS_PER_BLOCK = "max_threads_per_block"
    """int"""
    MAX_BLOCK_DIMENSIONS = "max_block_dimensions"
    """tuple[int, int, int]: threads of a block along x, y and z, each at most MAX_THREADS_PER_BLOCK"""
    SUBGROUP_SIZE = "subgroup_size"
    """int: threads that run in step (warp, wavefront)"""
    LOCAL_MEMORY_BYTES = "local_memory_bytes"
    """int: bytes that the threads of a block share"""
    REGISTERS_PER_BLOCK = "registers_per_block"
    """int: registers of 32 bits"""
    MAX_CLOCK_HZ = "max_clock_hz"
    """int: Hz"""
    MEMORY_CLOCK_HZ = "memory_clock_hz"
    """int: Hz"""
    IMAGE_PITCH_BYTES = "image_pitch_bytes"
    """int: bytes of which the pitch of an image's rows in a buffer is to be a multiple, whatever its format"""
    TOTAL_MEMORY = "total_memory"
    """int: bytes"""
    AVAILABLE_MEMORY = "available_memory"
    """int: bytes now"""
    PAGE_BYTES = "page_bytes"
    """int: bytes of a page"""
    CACHE_LINE_BYTES = "cache_line_bytes"
    """int: bytes of a cache line"""
    L1_DATA_BYTES = "l1_data_bytes"
    """int: bytes of one L1 data cache"""
    L2_BYTES = "l2_bytes"
    """int: bytes of one L2 cache"""
    L3_BYTES = "l3_bytes"
    """int: bytes of one L3 cache"""
    FEATURES = "features"
    """tuple[str, ...]: instruction set features"""


_TEXTS = (DeviceAttr.PRODUCT_NAME, DeviceAttr.VENDOR, DeviceAttr.DRIVER_VERSION, DeviceAttr.API_VERSION)


def is_legal(attr: DeviceAttr, value: object) -> bool:
    """Returns whether ``value`` is of the type of ``attr``, or None; numbers must be 0 or more."""
    if value is None:
        return True
    if attr in _TEXTS:
        return isinstance(value, str)
    if attr is DeviceAttr.FEATURES:
        return isinstance(value, tuple) and all(isinstance(each, str) for each in value)
    if attr is DeviceAttr.MAX_BLOCK_DIMENSIONS:
        return isinstance(value, tuple) and len(value) == 3 and all(_is_count(each) for each in value)
    return _is_count(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
