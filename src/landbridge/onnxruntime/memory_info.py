"""Devices and memory by onnxruntime's names: here there is the host's alone."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from landbridge.onnxruntime.host_device import check_device


class OrtAllocatorType(IntEnum):
    """How onnxruntime would allocate; changes nothing."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(IntEnum):
    """Whose memory it is; the host's in any case."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    DEFAULT = 0


class OrtDevice:
    """``cpu:0``; made by ``OrtDevice.make``, which raises Fail for another."""

    def __init__(self, device_type: str = "cpu", device_id: int = 0) -> None:
        check_device(device_type, device_id)

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """The device; raises Fail for one that is not the host's CPU."""
        return OrtDevice(ort_device_name.lower(), device_id)

    @staticmethod
    def cpu() -> int:
        """The number of CPUs as a type of device."""
        return 0

    @staticmethod
    def default_memory() -> int:
        """The number of memory that is not shared among devices."""
        return 0

    def device_id(self) -> int:
        """0."""
        return 0

    def device_type(self) -> str:
        """``"cpu"``."""
        return "cpu"


class OrtMemoryInfo:
    """Memory by the names that onnxruntime has for it."""

    def __init__(
        self,
        name: str = "Cpu",
        allocator_type: OrtAllocatorType = OrtAllocatorType.ORT_DEVICE_ALLOCATOR,
        device_id: int = 0,
        mem_type: OrtMemType = OrtMemType.DEFAULT,
    ) -> None:
        check_device(name.lower(), device_id)
        self.name = name
        self.allocator_type = allocator_type
        self.device_id = device_id
        self.device_mem_type = mem_type


class OrtArenaCfg:
    """Kept, and changes nothing: the memory of a run is planned when the model is compiled."""

    def __init__(self, *settings: int | Mapping[str, Any]) -> None:
        self.settings = settings
