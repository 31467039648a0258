"""ONNX models to graph IR."""

from landbridge.frontend.late_import import import_late

# onnx_ir computes with symbolic extents by sympy, which we never ask for: 0.3 s of a compile.
import_late("sympy", "onnx_ir._symbolic_shapes")

from landbridge.frontend.onnx.external_data import data_rules  # noqa: E402
from landbridge.frontend.onnx.importer import import_onnx  # noqa: E402

__all__ = ["data_rules", "import_onnx"]
