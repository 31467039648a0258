"""The name under which programs import onnxruntime's exceptions."""
