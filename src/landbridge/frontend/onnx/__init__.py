"""Imports ONNX models as graph IR, by ``importer``.

Nothing is imported here, so that callers that only read a file's labels or types need no compiler.
"""

from landbridge.frontend.late_import import import_late

# onnx_ir imports sympy for symbolic extents, which are never used here; it would take 0.3 s of a compile.
import_late("sympy", "onnx_ir._symbolic_shapes")
