"""Implements onnxruntime's Python API on Landbridge's Sessions; a program only changes its import.

::

    import landbridge.onnxruntime as ort

    session = ort.InferenceSession("model.onnx")
    (y,) = session.run(None, {"x": x})

Models run on this host's CPU, compiled once and then taken from the cache on disk. Names and meanings are those of
onnxruntime; options for its own implementation (optimization levels, arenas, execution modes) are accepted without
effect. ``docs/from-onnxruntime.md`` says what differs.

Names are imported when first used, as those of ``landbridge`` are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from landbridge.onnxruntime.version import VERSION
from landbridge.process.exhaustion import reports_exhaustion
from landbridge.process.garbage import collector_paused

if TYPE_CHECKING:
    from landbridge.onnxruntime.inference_session import InferenceSession
    from landbridge.onnxruntime.installed import install_as_onnxruntime
    from landbridge.onnxruntime.io_binding import IOBinding, SessionIOBinding
    from landbridge.onnxruntime.lora_adapter import AdapterFormat, LoraAdapter
    from landbridge.onnxruntime.memory_info import OrtAllocatorType, OrtArenaCfg, OrtDevice, OrtMemoryInfo, OrtMemType
    from landbridge.onnxruntime.model_compiler import ModelCompiler, OrtCompileApiFlags
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
        create_and_register_allocator,
        disable_telemetry_events,
        enable_telemetry_events,
        get_all_providers,
        get_available_providers,
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
    from landbridge.onnxruntime.sparse_tensor import OrtSparseFormat, SparseTensor

__all__ = [
    "AdapterFormat",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "LoraAdapter",
    "ModelCompiler",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtCompileApiFlags",
    "OrtDevice",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtSparseFormat",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
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

#: Where each public name is defined.
_NAMES_OF = {
    "inference_session": ("InferenceSession",),
    "installed": ("install_as_onnxruntime",),
    "io_binding": ("IOBinding", "SessionIOBinding"),
    "lora_adapter": ("AdapterFormat", "LoraAdapter"),
    "memory_info": ("OrtAllocatorType", "OrtArenaCfg", "OrtDevice", "OrtMemType", "OrtMemoryInfo"),
    "model_compiler": ("ModelCompiler", "OrtCompileApiFlags"),
    "model_facts": ("ModelMetadata", "NodeArg"),
    "options": ("ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "RunOptions", "SessionOptions"),
    "ort_value": ("OrtValue",),
    "sparse_tensor": ("OrtSparseFormat", "SparseTensor"),
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}
#: Modules that programs reach as attributes, without an import of their own.
_MODULES = ("capi", "datasets")


def __getattr__(name: str) -> Any:
    with collector_paused(), reports_exhaustion(f"{name} was imported"):
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULE_OF.get(name, 'process')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
