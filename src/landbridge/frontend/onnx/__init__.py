"""ONNX models to graph IR."""

from landbridge.frontend.onnx.importer import import_onnx

__all__ = ["import_onnx"]
