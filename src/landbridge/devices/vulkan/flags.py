"""Flags and enumerators of vulkan_core.h (Vulkan 1.3) that Landbridge uses."""

from __future__ import annotations

from typing import Final

API_1_2: Final = 1 << 22 | 2 << 12

MEMORY_DEVICE_LOCAL: Final = 1
MEMORY_HOST_VISIBLE: Final = 2
MEMORY_HOST_COHERENT: Final = 4
MEMORY_HOST_CACHED: Final = 8
HEAP_DEVICE_LOCAL: Final = 1

QUEUE_COMPUTE: Final = 2

DEVICE_TYPES: Final = ("other", "integrated GPU", "discrete GPU", "virtual GPU", "CPU")

BUFFER_USAGE: Final = 1 | 2 | 32  # transfer source, transfer destination, storage buffer

HANDLE_HOST_ALLOCATION: Final = 0x80
HANDLE_DMA_BUF: Final = 0x200

IMAGE_2D: Final = 1
IMAGE_VIEW_2D: Final = 1
IMAGE_SAMPLES_1: Final = 1
IMAGE_TRANSFER: Final = 1 | 2
IMAGE_SAMPLED: Final = 4
IMAGE_STORAGE: Final = 8
IMAGE_LAYOUT_GENERAL: Final = 1
IMAGE_ASPECT_COLOR: Final = 1
FORMAT_SAMPLED: Final = 1
FORMAT_STORAGE: Final = 2
FORMAT_TRANSFER: Final = 0x4000 | 0x8000
QUEUE_FAMILY_IGNORED: Final = 0xFFFFFFFF

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

DESCRIPTOR_SAMPLED_IMAGE: Final = 2
DESCRIPTOR_STORAGE_IMAGE: Final = 3
DESCRIPTOR_STORAGE_BUFFER: Final = 7
SHADER_STAGE_COMPUTE: Final = 0x20
BIND_POINT_COMPUTE: Final = 1

WHOLE_SIZE: Final = (1 << 64) - 1
