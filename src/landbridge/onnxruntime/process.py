"""The module-level functions of onnxruntime: its version and devices, and settings of the whole process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from landbridge.onnxruntime.version import VERSION
from landbridge.package_version import package_version

#: This host's CPU by onnxruntime's name.
CPU = "CPUExecutionProvider"


def get_available_providers() -> list[str]:
    """Returns the one provider: this host's CPU."""
    return [CPU]


def get_device() -> str:
    """Returns ``"CPU"``, where models run."""
    return "CPU"


def get_all_providers() -> list[str]:
    """Returns the available providers, as ``get_available_providers`` does."""
    return get_available_providers()


def get_version_string() -> str:
    """Returns the release of onnxruntime whose API this is; ``get_build_info`` has the version of Landbridge."""
    return VERSION


def get_build_info() -> str:
    """Returns a text with the version of Landbridge."""
    return f"Landbridge {package_version('landbridge')} in the place of onnxruntime"


def get_ep_devices() -> list[Any]:
    """Returns an empty list: execution providers are not loaded from libraries."""
    return []


def has_collective_ops() -> bool:
    """Returns False: there are no operators that communicate between processes."""
    return False


def set_default_logger_severity(severity: int) -> None:
    """Does nothing: Landbridge warns by Python's ``warnings``."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Does nothing: Landbridge warns by Python's ``warnings``."""


def set_default_logger_callback(callback: Callable[..., object] | None, severity: int = 2) -> None:
    """Does nothing: Landbridge warns by Python's ``warnings``."""


def set_seed(seed: int) -> None:
    """Does nothing: operators that draw random numbers have their seed in the model."""


def set_global_thread_pool_sizes(intra_op_num_threads: int, inter_op_num_threads: int) -> None:
    """Does nothing: each session has its own threads, by its options."""


def enable_telemetry_events() -> None:
    """Does nothing: Landbridge has no telemetry."""


def disable_telemetry_events() -> None:
    """Does nothing: Landbridge has no telemetry."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Does nothing: the CPU needs no libraries of others."""


def print_debug_info() -> None:
    """Prints the version of Landbridge; ``landbridge devices`` prints more."""
    print(get_build_info())


def create_and_register_allocator(memory_info: object, arena_cfg: object = None) -> None:
    """Does nothing: the memory of a run is planned when the model is compiled."""
