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
from landbridge.onnxruntime.installed import install_as_onnxruntime
from landbridge.onnxruntime.io_binding import IOBinding, SessionIOBinding
from landbridge.onnxruntime.memory_info import OrtAllocatorType, OrtArenaCfg, OrtDevice, OrtMemoryInfo, OrtMemType
from landbridge.onnxruntime.model_facts import ModelMetadata, NodeArg
from landbridge.onnxruntime.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from landbridge.onnxruntime.ort_value import OrtValue
from landbridge.onnxruntime.process import (
    VERSION,
    create_and_register_allocator,
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_build_info,
    get_device,
    get_ep_devices,
    get_version_string,
    has_collective_ops,
    preload_dlls,
    print_debug_info,
    set_default_logger_callback,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
)

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "create_and_register_allocator",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "install_as_onnxruntime",
    "preload_dlls",
    "print_debug_info",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
]

__version__ = VERSION
