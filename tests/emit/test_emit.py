"""Registers and instructions of a planned @main."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from landbridge.emit import emit
from landbridge.errors import CodegenError
from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    Call,
    HostCall,
    If,
    LoadConstant,
    ToVDevice,
    View,
)
from landbridge.executable.parts import StorageReport, TensorSpec, VDevice
from landbridge.ir.module import IRModule
from landbridge.targets import Target

TEXT = """
builtin.module {
  func.func @k(%0: memref<4xf32, "global">, %1: memref<4xf32, "global">) attributes {lb.prim, lb.moves = 16 : i64} {
    func.return
  }
  func.func @main(%0: memref<i1, "global">, %1: memref<2x2xui8, "global">, %2: memref<4xf32, "global">)
      attributes {lb.input_names = ["flag", "image"], lb.output_names = ["y"]} {
    %3 = "lb.alloc_storage"() {nbytes = 32 : i64, alignment = 64 : i64, vdevice = #lb.vdevice<1, "global">,
      lb.lower_bound = 24 : i64, lb.proved_optimal = false} : () -> !lb.storage
    %4 = "lb.alloc_tensor"(%3) {offset = 16 : i64, node = "t"} : (!lb.storage) -> memref<4xf32, "global">
    %5 = "lb.constant"() {symbol = @w, lb.vdevice = #lb.vdevice<1, "global">} : () -> memref<8xf32, "global">
    %6 = "lb.view"(%5) {offset = 4 : i64} : (memref<8xf32, "global">) -> memref<4xf32, "global">
    "lb.if"(%0, %2) ({
      "lb.call"(%6, %4) {callee = @k, node = "K", operandSegmentSizes = array<i32: 1, 1>} :
        (memref<4xf32, "global">, memref<4xf32, "global">) -> ()
      "lb.yield"() : () -> ()
    }, {
      "lb.host_call"(%1, %4) {builtin = "sum", parameters = {axis = 1 : i64, keep = true, mode = "x", at = [1 : i64]},
        operandSegmentSizes = array<i32: 1, 1>} : (memref<2x2xui8, "global">, memref<4xf32, "global">) -> ()
      "lb.yield"() : () -> ()
    }) : (memref<i1, "global">, memref<4xf32, "global">) -> ()
    "memref.copy"(%4, %2) {node = "back"} : (memref<4xf32, "global">, memref<4xf32, "global">) -> ()
    func.return
  }
}
"""


def module() -> IRModule:
    constants = {"w": np.zeros(8, np.float32)}
    vdevices = (VDevice("cpu", 0), VDevice("npu", 0))
    return IRModule.parse(TEXT, (Target("llvm"),), vdevices, constants)


def lowered() -> ModuleOp:
    text = "builtin.module { func.func @k() attributes {lb.tasks = 3 : i64} { func.return } }"
    return IRModule.parse(text, ()).op


def test_registers_are_inputs_outputs_then_what_is_defined():
    main = emit(module(), lowered()).main
    assert main.inputs == (TensorSpec("flag", (), "bool"), TensorSpec("image", (2, 2), "uint8"))
    assert main.outputs == (TensorSpec("y", (4,), "float32"),)
    assert main.instructions == (
        AllocStorage(3, 32, 1, 64),
        AllocTensor(4, 3, 16, (4,), "float32", "t"),
        LoadConstant(5, "w", 1),
        View(6, 5, 16, (4,), "float32"),
        If(
            0,
            (Call(0, "k", (6, 4), 3, "K", moves_bytes=16),),
            (HostCall("sum", (1, 4), {"axis": 1, "keep": True, "mode": "x", "at": [1]}),),
        ),
        ToVDevice(4, 2, "back"),
    )


def test_the_plan_is_reported():
    assert emit(module(), lowered()).memory == (StorageReport("npu", "global", 32, 24, False),)


def test_stack_and_constants_are_those_of_the_kernels_and_the_module():
    text = """builtin.module {
      func.func @k() attributes {lb.tasks = 3 : i64} { %0 = memref.alloca() : memref<6xf32> func.return }
      func.func @l() attributes {lb.tasks = 3 : i64} { %0 = memref.alloca() : memref<4xf32> func.return }
    }"""
    given = module()
    given.parameters["p"] = np.ones(2, np.float32)
    found = emit(given, IRModule.parse(text, ()).op)
    assert (found.scratch_bytes, found.modules) == (24, ())
    assert set(found.constants) == {"w", "parameter:p"}


def test_a_kernel_that_was_not_lowered_is_named():
    with pytest.raises(CodegenError, match="@k was not lowered"):
        emit(module(), ModuleOp([]))


def test_tensors_have_no_registers():
    text = """builtin.module { func.func @main() {
      %0 = bufferization.alloc_tensor() : tensor<4xf32, #lb.vdevice<0, "global">>
      func.return
    } }"""
    with pytest.raises(CodegenError, match="alloc_tensor has no instruction; run the passes bufferize and plan"):
        emit(IRModule.parse(text, ()), lowered())
