"""What a device and the host both use in place is produced in memory of the host, as is all that shares its bytes."""

from __future__ import annotations

import pytest
from xdsl.ir import OpResult

from landbridge.analysis.placements import shared_placements
from landbridge.executable.parts import VDevice
from landbridge.ir.module import IRModule
from landbridge.targets import Target

#: What is done with values of the GPU, %a and %b, of which a kernel makes each.
USES = {
    "a view to the host": ('%c = "lb.to_vdevice"(%a) {view} : (!gpu) -> !cpu', "a"),
    "a copy to the host": ('%c = "lb.to_vdevice"(%a) : (!gpu) -> !cpu', ""),
    "a view of it that crosses": (
        """%v = "lb.view"(%a) {offset = 2 : i64} : (!gpu) -> tensor<2xf32, #lb.vdevice<0, "global">>
        %c = "lb.to_vdevice"(%v) {view} : (tensor<2xf32, #lb.vdevice<0, "global">>) ->
          tensor<2xf32, #lb.vdevice<1, "global">>""",
        "a",
    ),
    "all of it as another shape": (
        """%v = "lb.view"(%a) {offset = 0 : i64} : (!gpu) -> tensor<2x2xf32, #lb.vdevice<0, "global">>
        %c = "lb.to_vdevice"(%v) {view} : (tensor<2x2xf32, #lb.vdevice<0, "global">>) ->
          tensor<2x2xf32, #lb.vdevice<1, "global">>""",
        "a",
    ),
    "a concatenation that crosses": (
        """%whole = "lb.concat"(%a, %b) {axis = 0 : i64} : (!gpu, !gpu) -> tensor<8xf32, #lb.vdevice<0, "global">>
        %c = "lb.to_vdevice"(%whole) {view} : (tensor<8xf32, #lb.vdevice<0, "global">>) ->
          tensor<8xf32, #lb.vdevice<1, "global">>""",
        "a b whole",
    ),
    "a concatenation that stays": (
        """%whole = "lb.concat"(%a, %b) {axis = 0 : i64} : (!gpu, !gpu) -> tensor<8xf32, #lb.vdevice<0, "global">>
        %c = "lb.to_vdevice"(%whole) : (tensor<8xf32, #lb.vdevice<0, "global">>) ->
          tensor<8xf32, #lb.vdevice<1, "global">>""",
        "",
    ),
    "one of the parts crosses": (
        """%whole = "lb.concat"(%a, %b) {axis = 0 : i64} : (!gpu, !gpu) -> tensor<8xf32, #lb.vdevice<0, "global">>
        %c = "lb.to_vdevice"(%b) {view} : (!gpu) -> !cpu""",
        "a b whole",
    ),
    "the result of branches crosses": (
        """%r = "lb.if"(%go) ({
          "lb.yield"(%a) : (!gpu) -> ()
        }, {
          "lb.yield"(%b) : (!gpu) -> ()
        }) {operandSegmentSizes = array<i32: 1, 0>} : (!go) -> !gpu
        %c = "lb.to_vdevice"(%r) {view} : (!gpu) -> !cpu""",
        "a b r",
    ),
    "back to the device": (
        """%c = "lb.to_vdevice"(%a) {view} : (!gpu) -> !cpu
        %back = "lb.to_vdevice"(%c) {view} : (!cpu) -> !gpu""",
        "a",
    ),
}


@pytest.mark.parametrize("use", USES)
def test_values_placed_with_the_host(use: str) -> None:
    body, expected = USES[use]
    text = f"""
      !gpu = tensor<4xf32, #lb.vdevice<0, "global">>
      !cpu = tensor<4xf32, #lb.vdevice<1, "global">>
      !go = tensor<i1, #lb.vdevice<0, "global">>
      !m = memref<4xf32, "global">
      func.func @k(%x: !m, %y: !m) attributes {{lb.prim}} {{
        func.return
      }}
      func.func @main(%x: !gpu, %go: !go) {{
        %d = bufferization.alloc_tensor() : !gpu
        %a = "lb.call"(%x, %d) {{callee = @k, operandSegmentSizes = array<i32: 1, 1>}} : (!gpu, !gpu) -> !gpu
        %e = bufferization.alloc_tensor() : !gpu
        %b = "lb.call"(%x, %e) {{callee = @k, operandSegmentSizes = array<i32: 1, 1>}} : (!gpu, !gpu) -> !gpu
        {body}
        func.return
      }}"""
    targets = Target({"kind": "opencl", "shares": [["cpu", "global"]]}), Target("llvm")
    module = IRModule.parse(text, targets, (VDevice("opencl", 0), VDevice("cpu", 1)))
    placements = shared_placements(module, module.main.body.block)
    assert all(isinstance(value, OpResult) and placement.index.data == 1 for value, placement in placements.items())
    assert {value.name_hint for value in placements} == set(expected.split())
