// place moves what lb.place names to its vdevice and scope, with lb.to_vdevice where a tensor crosses, and gives every
// PrimFunc the memory spaces that it is called with.

!cpu = tensor<4xf32, #lb.vdevice<0, "global">>
!npu = tensor<4xf32, #lb.vdevice<1, "global">>
!fast = tensor<4xf32, #lb.vdevice<0, "global.fast">>
!m = memref<4xf32, "global">
!mfast = memref<4xf32, "global.fast">

// ---- a node on another vdevice: its operands are carried there, its result back
// target cpu: llvm -mcpu=x86-64-v3
// target npu: llvm -mcpu=x86-64-v4
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !cpu) -> !cpu attributes {lb.place = {"b*" = #lb.vdevice<1, "global">}} {
  %d = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %e = bufferization.alloc_tensor() : !cpu
  %z = "lb.call"(%y, %e) {callee = @k, node = "b1", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  func.return %z : !cpu
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !cpu) -> !cpu {
  %d = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %e = bufferization.alloc_tensor() : !npu
  %0 = "lb.to_vdevice"(%y) {node = "a to npu"} : (!cpu) -> !npu
  %z = "lb.call"(%0, %e) {callee = @k, node = "b1", operandSegmentSizes = array<i32: 1, 1>} : (!npu, !npu) -> !npu
  %1 = "lb.to_vdevice"(%z) {node = "b1 to cpu"} : (!npu) -> !cpu
  func.return %1 : !cpu
}

// ---- a result in another scope: its kernel writes there, and is cloned as others do not
// target cpu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.fast", "host_access": "read_write", "coherent": true}]}
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !cpu) -> !cpu attributes {lb.place = {"a" = #lb.vdevice<0, "global.fast">}} {
  %d = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %e = bufferization.alloc_tensor() : !cpu
  %z = "lb.call"(%y, %e) {callee = @k, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  func.return %z : !cpu
}
// becomes
func.func @k(%x: !m, %y: !mfast) attributes {lb.prim} {
  func.return
}
func.func @k_s0(%x: !mfast, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !cpu) -> !cpu {
  %d = bufferization.alloc_tensor() : !fast
  %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !fast) -> !fast
  %e = bufferization.alloc_tensor() : !cpu
  %z = "lb.call"(%y, %e) {callee = @k_s0, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!fast, !cpu) -> !cpu
  func.return %z : !cpu
}

// ---- inputs and constants lie where their names ask
// target cpu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.fast", "host_access": "read_write", "coherent": true}]}
func.func @k(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !cpu) -> !cpu attributes {lb.input_names = ["x"], lb.place = {"x" = #lb.vdevice<0, "global.fast">, "w" = #lb.vdevice<0, "global.fast">}} {
  %w = "lb.constant"() {symbol = @w} : () -> !cpu
  %d = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %w, %d) {callee = @k, operandSegmentSizes = array<i32: 2, 1>} : (!cpu, !cpu, !cpu) -> !cpu
  func.return %y : !cpu
}
// becomes
func.func @k(%x: !mfast, %w: !mfast, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !fast) -> !cpu attributes {lb.input_names = ["x"]} {
  %w = "lb.constant"() {symbol = @w} : () -> !fast
  %d = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %w, %d) {callee = @k, operandSegmentSizes = array<i32: 2, 1>} : (!fast, !fast, !cpu) -> !cpu
  func.return %y : !cpu
}
