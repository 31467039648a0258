"""Operators of onnxruntime and of ``ai.onnx.ml`` that are defined by those of ONNX."""
