"""Buffers are in use from the first step that touches them to the last; what is prepared is in use at every run."""

from __future__ import annotations

from landbridge.analysis.lifetimes import lifetimes
from landbridge.executable.parts import VDevice
from landbridge.ir.module import IRModule
from landbridge.targets import Target

PROGRAM = """
!m = memref<4xf32, "global">
func.func @copy(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !m, %y: !m) {
  %w = "lb.constant"() {symbol = @w} : () -> !m
  %s = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  %t = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  %p = memref.alloc() {lb.vdevice = #lb.vdevice<0, "global">} : !m
  "lb.call"(%w, %p) {callee = @copy, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.prepared"(%p) : (!m) -> ()
  "lb.call"(%p, %s) {callee = @copy, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%s, %t) {callee = @copy, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  "lb.call"(%t, %y) {callee = @copy, operandSegmentSizes = array<i32: 1, 1>} : (!m, !m) -> ()
  func.return
}
"""


def test_a_prepared_buffer_is_in_use_past_the_last_step_and_others_until_they_are_read() -> None:
    module = IRModule.parse(PROGRAM, (Target("llvm"),), (VDevice("cpu", 0),))
    block = module.main.body.block
    lives = lifetimes(block)
    found = {op.results[0].name_hint: lives[op.results[0]] for op in block.ops if op.results and op.results[0] in lives}
    spans = {name: (life.first, life.last) for name, life in found.items()}
    assert spans["s"] == (2, 3) and spans["t"] == (3, 4) and spans["w"] == (0, 0)
    assert spans["p"][0] == 0 and spans["p"][1] > 4
