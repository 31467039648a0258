"""DeviceAttr: the questions every device can be asked; None is always a legal answer."""

from __future__ import annotations

from enum import Enum


class DeviceAttr(Enum):
    """One fact about a device. The comment above each gives the type and unit of the answer."""

    #: str
    PRODUCT_NAME = "product_name"
    #: str
    VENDOR = "vendor"
    #: str
    DRIVER_VERSION = "driver_version"
    #: int: cores, multiprocessors
    COMPUTE_UNITS = "compute_units"
    #: int
    MAX_THREADS_PER_BLOCK = "max_threads_per_block"
    #: int: Hz
    MAX_CLOCK_HZ = "max_clock_hz"
    #: int: bytes
    TOTAL_MEMORY = "total_memory"
    #: int: bytes now
    AVAILABLE_MEMORY = "available_memory"
    #: int: bytes of a page
    PAGE_BYTES = "page_bytes"
    #: int: bytes of a cache line
    CACHE_LINE_BYTES = "cache_line_bytes"
    #: int: bytes of one L1 data cache
    L1_DATA_BYTES = "l1_data_bytes"
    #: int: bytes of one L2 cache
    L2_BYTES = "l2_bytes"
    #: int: bytes of one L3 cache
    L3_BYTES = "l3_bytes"
    #: tuple[str, ...]: instruction set features
    FEATURES = "features"
