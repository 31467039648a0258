"""What the module says of itself, and its settings: the names that onnxruntime has."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import onnxruntime
import pytest

import landbridge.onnxruntime as ours
from landbridge.onnxruntime.capi.onnxruntime_pybind11_state import Fail
from tests.onnxruntime.both import both


def test_names_are_those_of_onnxruntime() -> None:
    owned = {"install_as_onnxruntime", "ModelMetadata", "SessionIOBinding"}
    assert not {name for name in ours.__all__ if not hasattr(onnxruntime, name)} - owned


def test_programs_may_compare_the_version() -> None:
    assert tuple(map(int, ours.__version__.split("."))) >= (1, 20, 0)  # noqa: RUF048  (as programs do)
    assert ours.get_version_string() == ours.__version__
    assert "Landbridge" in ours.get_build_info()


def test_settings_of_the_process() -> None:
    def program(module: ModuleType) -> Any:
        module.set_default_logger_severity(3)
        module.set_default_logger_verbosity(0)
        module.disable_telemetry_events()
        module.enable_telemetry_events()
        module.set_seed(3)
        return [module.get_device(), "CPUExecutionProvider" in module.get_available_providers()]

    both(program)


def test_devices_and_memory() -> None:
    def program(module: ModuleType) -> Any:
        device = module.OrtDevice.make("cpu", 0)
        info = module.OrtMemoryInfo("Cpu", module.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, module.OrtMemType.DEFAULT)
        return [device.device_type(), device.device_id(), info.name, info.device_id]

    with pytest.raises(Fail, match="cuda:0 is not there"):
        ours.OrtDevice.make("cuda", 0)
    program(ours)
    assert ours.OrtDevice.make("cpu", 0).device_id() == onnxruntime.OrtDevice.make("cpu", 0).device_id() == 0
