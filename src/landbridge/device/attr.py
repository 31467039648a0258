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
    COMPUTE_UNITS = "compute_units"
    """int: cores, multiprocessors"""
    MAX_THREADS_PER_BLOCK = "max_threads_per_block"
    """int"""
    MAX_CLOCK_HZ = "max_clock_hz"
    """int: Hz"""
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


_TEXTS = (DeviceAttr.PRODUCT_NAME, DeviceAttr.VENDOR, DeviceAttr.DRIVER_VERSION)


def is_legal(attr: DeviceAttr, value: object) -> bool:
    """Returns whether ``value`` is of the type of ``attr``, or None; numbers must be 0 or more."""
    if value is None:
        return True
    if attr in _TEXTS:
        return isinstance(value, str)
    if attr is DeviceAttr.FEATURES:
        return isinstance(value, tuple) and all(isinstance(each, str) for each in value)
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
