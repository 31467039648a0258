"""Another name under which programs import onnxruntime's classes."""

from __future__ import annotations

from landbridge.onnxruntime.inference_session import InferenceSession
from landbridge.onnxruntime.io_binding import IOBinding
from landbridge.onnxruntime.memory_info import OrtDevice
from landbridge.onnxruntime.ort_value import OrtValue

#: The base of onnxruntime's sessions.
Session = InferenceSession

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "Session"]
