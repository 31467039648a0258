"""ONNX models to graph IR: ``importer`` does it. Nothing is imported here, so that what only reads a file's labels or
types needs no compiler."""

from landbridge.frontend.late_import import import_late

# onnx_ir computes with symbolic extents by sympy, which we never ask for: 0.3 s of a compile.
import_late("sympy", "onnx_ir._symbolic_shapes")
