"""Another name under which programs import onnxruntime's exceptions and functions."""

from __future__ import annotations

from landbridge.onnxruntime.capi.onnxruntime_pybind11_state import (
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NoModel,
    NoSuchFile,
    NotImplemented,
    RuntimeException,
)
from landbridge.onnxruntime.memory_info import OrtDevice, OrtMemoryInfo
from landbridge.onnxruntime.model_facts import ModelMetadata, NodeArg
from landbridge.onnxruntime.options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions
from landbridge.onnxruntime.ort_value import OrtValue
from landbridge.onnxruntime.process import get_all_providers, get_device, get_version_string
from landbridge.onnxruntime.providers import get_available_providers

__all__ = [
    "EPFail",
    "ExecutionMode",
    "Fail",
    "GraphOptimizationLevel",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelMetadata",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotImplemented",
    "OrtDevice",
    "OrtMemoryInfo",
    "OrtValue",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "get_version_string",
]
