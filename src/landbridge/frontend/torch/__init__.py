"""Converts modules and exported programs of torch to ONNX models in memory, by torch's own exporter."""

from landbridge.frontend.torch.export import TorchExport, export

__all__ = ["TorchExport", "export"]
