"""The release of onnxruntime whose API is implemented."""

from __future__ import annotations

#: The release of onnxruntime whose names and meanings these are: numbers and dots alone, as programs compare them.
VERSION = "1.32.0"
