"""Translations of ONNX operators to calls of numpy kernels, a module for each family."""

from landbridge.first_tier.operators import elementwise, movement, quantization, recurrent, resizing, sums, windows
from landbridge.first_tier.operators.request import TRANSLATIONS, Request

__all__ = [
    "TRANSLATIONS",
    "Request",
    "elementwise",
    "movement",
    "quantization",
    "recurrent",
    "resizing",
    "sums",
    "windows",
]
