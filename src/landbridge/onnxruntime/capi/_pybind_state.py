"""An alias module from which programs import onnxruntime's exceptions and functions."""

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
from landbridge.onnxruntime.lora_adapter import AdapterFormat, LoraAdapter
from landbridge.onnxruntime.memory_info import OrtDevice, OrtMemoryInfo
from landbridge.onnxruntime.model_facts import ModelMetadata, NodeArg
from landbridge.onnxruntime.options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions
from landbridge.onnxruntime.ort_value import OrtValue
from landbridge.onnxruntime.ort_value_vector import OrtValueVector
from landbridge.onnxruntime.process import get_all_providers, get_available_providers, get_device, get_version_string
from landbridge.onnxruntime.sparse_tensor import OrtSparseFormat, SparseTensor

__all__ = [
    "AdapterFormat",
    "EPFail",
    "ExecutionMode",
    "Fail",
    "GraphOptimizationLevel",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "LoraAdapter",
    "ModelMetadata",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotImplemented",
    "OrtDevice",
    "OrtMemoryInfo",
    "OrtSparseFormat",
    "OrtValue",
    "OrtValueVector",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
    "SparseTensor",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "get_version_string",
]
