"""What a program that uses onnxruntime calls, on Landbridge's Sessions: changing the import is enough.

::

    import landbridge.onnxruntime as ort

    session = ort.InferenceSession("model.onnx")
    (y,) = session.run(None, {"x": x})

Models run on this host's CPU, compiled once and then taken from the cache on disk. Names and meanings are those of
onnxruntime; options that choose among its own ways of running (optimization levels, arenas, execution modes) are taken
and change nothing. ``docs/from-onnxruntime.md`` says what differs.
"""

from __future__ import annotations

from landbridge.onnxruntime.inference_session import InferenceSession, get_available_providers
from landbridge.onnxruntime.io_binding import IOBinding, SessionIOBinding
from landbridge.onnxruntime.model_facts import ModelMetadata, NodeArg
from landbridge.onnxruntime.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from landbridge.onnxruntime.ort_value import OrtValue
from landbridge.package_version import package_version

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "get_version_string",
    "set_default_logger_severity",
    "set_seed",
]

__version__ = package_version("landbridge")


def get_device() -> str:
    """``"CPU"``: where models run."""
    return "CPU"


def get_all_providers() -> list[str]:
    """The providers there are, as ``get_available_providers``."""
    return get_available_providers()


def get_version_string() -> str:
    """The version of Landbridge."""
    return __version__


def set_default_logger_severity(severity: int) -> None:
    """Nothing: Landbridge warns by Python's ``warnings``."""


def set_seed(seed: int) -> None:
    """Nothing: operators that draw numbers have their seed in the model."""
