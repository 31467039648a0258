"""Definitions of operators of onnxruntime and of ``ai.onnx.ml`` by operators of ONNX."""
