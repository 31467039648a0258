"""An alias module from which programs import onnxruntime's classes."""

from __future__ import annotations

from landbridge.onnxruntime.inference_session import InferenceSession
from landbridge.onnxruntime.io_binding import IOBinding
from landbridge.onnxruntime.lora_adapter import AdapterFormat
from landbridge.onnxruntime.memory_info import OrtDevice
from landbridge.onnxruntime.model_compiler import ModelCompiler
from landbridge.onnxruntime.ort_value import OrtValue
from landbridge.onnxruntime.sparse_tensor import SparseTensor

#: The base of onnxruntime's sessions.
Session = InferenceSession

__all__ = [
    "AdapterFormat",
    "IOBinding",
    "InferenceSession",
    "ModelCompiler",
    "OrtDevice",
    "OrtValue",
    "Session",
    "SparseTensor",
]
