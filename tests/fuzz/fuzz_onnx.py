"""ONNX bytes: IR, which verifies or not, or a CompileError."""

from __future__ import annotations

import warnings

import onnx

from landbridge.errors import CompileError, InputError
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.ir.verifier import verify
from landbridge.targets import Target

INSTRUMENT = ("landbridge", "onnx_ir")

_TARGETS = (Target("llvm -mcpu=generic"),)
SEEDS = [
    onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}').SerializeToString()
    for graph in (
        "g (float[4] x) => (float[4] y) <float[4] b = {1, 2, 3, 4}> { y = Add(x, b) }",
        "g (float[1, 2, 5, 5] x, float[3, 2, 3, 3] w) => (float[1, 3, 5, 5] y)"
        "{ c = Conv <pads = [1, 1, 1, 1]> (x, w) y = Relu(c) }",
        "g (float[2, 3] x) => (float[3, 2] y) <int64[2] s = {3, -1}> { y = Reshape(x, s) }",
        "g (float[2, 3] x) => (float[2, 3] y) { s = Shape(x) c = ConstantOfShape(s) y = Add(x, c) }",
        "g (float[2, 6] x) => (float[2, 2] y) <int64[1] a = {1}, int64[1] b = {1}, int64[1] e = {3}>"
        "{ y = Slice(x, b, e, a) }",
        "g (float[4, 4] x) => (float[4, 4] y) { t = Transpose <perm = [1, 0]> (x) m = MatMul(x, t) y = Softmax(m) }",
        "g (bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] a) { a = Neg(x) },"
        "else_branch = e () => (float[2] a) { a = Abs(x) }> }",
    )
]


def check(data: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = import_onnx(ImportRequest(data, _TARGETS)).module
            verify(module, "import")
        except (CompileError, InputError):
            return
    assert module.print()


if __name__ == "__main__":
    from harness import restart_under_atheris

    restart_under_atheris(__file__)
