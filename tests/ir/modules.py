"""Modules that tests of the IR look at."""

from __future__ import annotations

from xdsl.dialects import func

from landbridge.ir.module import IRModule
from landbridge.targets import Target


def copying_main() -> func.FuncOp:
    """@main of a module that returns its input."""
    text = """
func.func @main(%0: tensor<2xf32, #lb.vdevice<0, "global">>) -> tensor<2xf32, #lb.vdevice<0, "global">> {
  func.return %0 : tensor<2xf32, #lb.vdevice<0, "global">>
}
"""
    return IRModule.parse(text, (Target("llvm -mcpu=x86-64-v3"),)).main
