"""Bits and enumerators of vulkan_core.h (Vulkan 1.3), those that Landbridge uses."""

from __future__ import annotations

from typing import Final

API_1_2: Final = 1 << 22 | 2 << 12

MEMORY_DEVICE_LOCAL: Final = 1
MEMORY_HOST_VISIBLE: Final = 2
MEMORY_HOST_COHERENT: Final = 4
MEMORY_HOST_CACHED: Final = 8
MEMORY_LAZILY_ALLOCATED: Final = 16
MEMORY_PROTECTED: Final = 32
HEAP_DEVICE_LOCAL: Final = 1

QUEUE_COMPUTE: Final = 2

DEVICE_TYPES: Final = ("other", "integrated GPU", "discrete GPU", "virtual GPU", "CPU")

BUFFER_USAGE: Final = 1 | 2 | 32  # transfer source, transfer destination, storage buffer

HANDLE_OPAQUE_FD: Final = 1
HANDLE_HOST_ALLOCATION: Final = 0x80
HANDLE_DMA_BUF: Final = 0x200

COMMAND_POOL_RESET: Final = 2
COMMAND_ONE_TIME: Final = 1
COMMAND_SIMULTANEOUS: Final = 4

STAGE_COMPUTE: Final = 0x800
STAGE_TRANSFER: Final = 0x1000
STAGE_BOTTOM: Final = 0x2000
STAGE_HOST: Final = 0x4000
STAGE_ALL: Final = 0x10000
ACCESS_HOST_READ: Final = 0x2000
ACCESS_HOST_WRITE: Final = 0x4000
ACCESS_READ: Final = 0x8000
ACCESS_WRITE: Final = 0x10000

SEMAPHORE_TIMELINE: Final = 1
QUERY_TIMESTAMP: Final = 2
QUERY_RESULT_64: Final = 1

DESCRIPTOR_STORAGE_BUFFER: Final = 7
SHADER_STAGE_COMPUTE: Final = 0x20
BIND_POINT_COMPUTE: Final = 1
LAYOUT_UPDATE_AFTER_BIND: Final = 2
POOL_UPDATE_AFTER_BIND: Final = 2
POOL_FREE_SETS: Final = 1
BINDING_UPDATE_AFTER_BIND: Final = 1

WHOLE_SIZE: Final = (1 << 64) - 1
