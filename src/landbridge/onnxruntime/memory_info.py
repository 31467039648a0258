"""Devices and memory by onnxruntime's names; only those of the host exist."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from landbridge.onnxruntime.capi.onnxruntime_pybind11_state import Fail


class OrtAllocatorType(IntEnum):
    """onnxruntime's types of allocators; they have no effect."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(IntEnum):
    """onnxruntime's types of memory; all of them mean the host's."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    DEFAULT = 0


class OrtDevice:
    """The device ``cpu:0``; ``OrtDevice.make`` makes it and raises Fail for another."""

    def __init__(self, device_type: str = "cpu", device_id: int = 0) -> None:
        check_device(device_type, device_id)

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """Returns the device; raises Fail for one that is not the host's CPU."""
        return OrtDevice(ort_device_name.lower(), device_id)

    @staticmethod
    def cpu() -> int:
        """Returns the device type of CPUs."""
        return 0

    @staticmethod
    def default_memory() -> int:
        """Returns the type of memory that is not shared among devices."""
        return 0

    def device_id(self) -> int:
        """Returns 0."""
        return 0

    def device_type(self) -> str:
        """Returns ``"cpu"``."""
        return "cpu"


class OrtMemoryInfo:
    """A description of memory by onnxruntime's names."""

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
    """Stores its options without effect: the memory of a run is planned when the model is compiled."""

    def __init__(self, *settings: int | Mapping[str, Any]) -> None:
        self.settings = settings


def check_device(device_type: str, device_id: int) -> None:
    """Raises Fail for a device other than this host's CPU."""
    if device_type != "cpu" or device_id:
        raise Fail(
            f"device {device_type}:{device_id} is not there: landbridge.onnxruntime runs on cpu:0; on other devices "
            "compile and run with landbridge itself"
        )
