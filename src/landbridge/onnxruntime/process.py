"""What onnxruntime's module says of itself, and its settings of the whole process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from landbridge.onnxruntime.providers import get_available_providers
from landbridge.onnxruntime.version import VERSION
from landbridge.package_version import package_version


def get_device() -> str:
    """``"CPU"``: where models run."""
    return "CPU"


def get_all_providers() -> list[str]:
    """The providers there are, as ``get_available_providers``."""
    return get_available_providers()


def get_version_string() -> str:
    """The release of onnxruntime that this stands for; ``get_build_info`` has the version of Landbridge."""
    return VERSION


def get_build_info() -> str:
    """Which Landbridge this is."""
    return f"Landbridge {package_version('landbridge')} in the place of onnxruntime"


def get_ep_devices() -> list[Any]:
    """None: execution providers are not loaded from libraries here."""
    return []


def has_collective_ops() -> bool:
    """False."""
    return False


def set_default_logger_severity(severity: int) -> None:
    """Nothing: Landbridge warns by Python's ``warnings``."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Nothing: Landbridge warns by Python's ``warnings``."""


def set_default_logger_callback(callback: Callable[..., object] | None, severity: int = 2) -> None:
    """Nothing: Landbridge warns by Python's ``warnings``."""


def set_seed(seed: int) -> None:
    """Nothing: operators that draw numbers have their seed in the model."""


def set_global_thread_pool_sizes(intra_op_num_threads: int, inter_op_num_threads: int) -> None:
    """Nothing: threads are of each session's options."""


def enable_telemetry_events() -> None:
    """Nothing: Landbridge sends nothing anywhere."""


def disable_telemetry_events() -> None:
    """Nothing: Landbridge sends nothing anywhere."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Nothing: the CPU needs no libraries of others."""


def print_debug_info() -> None:
    """Say which Landbridge this is; ``landbridge devices`` says more."""
    print(get_build_info())


def create_and_register_allocator(memory_info: object, arena_cfg: object = None) -> None:
    """Nothing: the memory of a run is planned when the model is compiled."""
