"""IR text: a module that prints and parses back to the same text and verifies or not, or a ParseError."""

from __future__ import annotations

from landbridge.errors import CompileError, ParseError
from landbridge.ir.module import IRModule
from landbridge.ir.verifier import verify
from landbridge.targets import Target

INSTRUMENT = ("landbridge",)

_TARGETS = (Target("llvm -mcpu=generic"),)
_HOST = '#lb.vdevice<0, "global">'
SEEDS = [
    text.replace("HOST", _HOST).encode()
    for text in (
        """
builtin.module {
  func.func @relu(%0: memref<4xf32, "global">, %1: memref<4xf32, "global">) attributes {lb.prim} {
    func.return
  }
  func.func @main(%0: tensor<4xf32, HOST>) -> tensor<4xf32, HOST> {
    %1 = "lb.constant"() {symbol = @w} : () -> tensor<2x2xui8, HOST>
    %2 = bufferization.alloc_tensor() : tensor<4xf32, HOST>
    %3 = "lb.call"(%0, %2) {callee = @relu, node = "Relu_0", operandSegmentSizes = array<i32: 1, 1>} :
      (tensor<4xf32, HOST>, tensor<4xf32, HOST>) -> tensor<4xf32, HOST>
    %4 = "lb.view"(%3) {offset = 2 : i64} : (tensor<4xf32, HOST>) -> tensor<2xf32, HOST>
    %5 = "lb.concat"(%4, %4) {axis = 0 : i64} :
      (tensor<2xf32, HOST>, tensor<2xf32, HOST>) -> tensor<4xf32, HOST>
    func.return %5 : tensor<4xf32, HOST>
  }
}
""",
        """
builtin.module {
  func.func @main(%0: tensor<4x6xf32, HOST>) -> tensor<2x3x2x2xf32, HOST> {
    %1 = "lb.pack"(%0) {axes = [0, 1], tiles = [2, 2]} : (tensor<4x6xf32, HOST>) -> tensor<2x3x2x2xf32, HOST>
    %2 = "lb.to_vdevice"(%1) : (tensor<2x3x2x2xf32, HOST>) -> tensor<2x3x2x2xf32, #lb.vdevice<1, "vtcm">>
    %3 = arith.constant dense<1.5> : vector<4xf32>
    %4 = arith.constant 7 : index
    func.return %1 : tensor<2x3x2x2xf32, HOST>
  }
}
""",
        """
builtin.module {
  func.func @f(%a: memref<8xf32, "global">, %b: memref<8xf32, "global">) attributes {lb.prim} {
    %z = arith.constant 0 : index
    %n = arith.constant 8 : index
    %o = arith.constant 1 : index
    scf.for %i = %z to %n step %o {
      %x = memref.load %a[%i] : memref<8xf32, "global">
      %y = math.exp %x : f32
      memref.store %y, %b[%i] : memref<8xf32, "global">
    }
    func.return
  }
}
""",
    )
]


def check(data: bytes) -> None:
    text = data.decode("ascii", "ignore")
    try:
        module = IRModule.parse(text, _TARGETS)
    except ParseError:
        return
    printed = module.print()
    assert IRModule.parse(printed, _TARGETS).print() == printed
    try:
        verify(module)
    except CompileError:
        return


if __name__ == "__main__":
    from harness import restart_under_atheris

    restart_under_atheris(__file__)
