// place.argument places inputs and outputs where it was requested by their names.

!cpu = tensor<4xf32, #lb.vdevice<0, "global">>
!npu = tensor<4xf32, #lb.vdevice<1, "global">>
!fast = tensor<4xf32, #lb.vdevice<0, "global.fast">>
!m = memref<4xf32, "global">
!mfast = memref<4xf32, "global.fast">
#id = affine_map<(d0) -> (d0)>

// ---- an input is bound in the scope that was requested
// target cpu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.fast", "host_access": "read_write", "coherent": true}]}
func.func @add(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %w : !m, !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !cpu) -> !cpu attributes {lb.input_names = ["x"], lb.place = {"x" = #lb.vdevice<0, "global.fast">}} {
  %w = "lb.constant"() {symbol = @w} : () -> !cpu
  %d_y = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %w, %d_y) {callee = @add, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!cpu, !cpu, !cpu) -> !cpu
  func.return %y : !cpu
}
// becomes
func.func @add(%x: !mfast, %w: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %w : !mfast, !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !fast) -> !cpu attributes {lb.input_names = ["x"]} {
  %w = "lb.constant"() {symbol = @w} : () -> !cpu
  %d_y = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %w, %d_y) {callee = @add, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!fast, !cpu, !cpu) -> !cpu
  func.return %y : !cpu
}

// ---- an input crosses once to another vdevice, as a Session binds memory of the first one
// target cpu: llvm -mcpu=x86-64-v3
// target npu: llvm -mcpu=x86-64-v4
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !cpu) -> (!cpu, !cpu) attributes {lb.input_names = ["x"], lb.place = {"x" = #lb.vdevice<1, "global">, "?" = #lb.vdevice<1, "global">}} {
  %d_y = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %d_z = bufferization.alloc_tensor() : !cpu
  %z = "lb.call"(%x, %d_z) {callee = @double, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  func.return %y, %z : !cpu, !cpu
}
// becomes
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !cpu) -> (!cpu, !cpu) attributes {lb.input_names = ["x"]} {
  %x_1 = "lb.to_vdevice"(%x) {node = "input x"} : (!cpu) -> !npu
  %d_y = bufferization.alloc_tensor() : !npu
  %y = "lb.call"(%x_1, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!npu, !npu) -> !npu
  %d_z = bufferization.alloc_tensor() : !npu
  %z = "lb.call"(%x_1, %d_z) {callee = @double, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!npu, !npu) -> !npu
  %0 = "lb.to_vdevice"(%y) {node = "a to cpu"} : (!npu) -> !cpu
  %1 = "lb.to_vdevice"(%z) {node = "b to cpu"} : (!npu) -> !cpu
  func.return %0, %1 : !cpu, !cpu
}

// ---- not an input for which nothing was requested
// target cpu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.fast", "host_access": "read_write", "coherent": true}]}
func.func @add(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %w : !m, !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !cpu) -> !cpu attributes {lb.input_names = ["x"], lb.place = {"w" = #lb.vdevice<0, "global.fast">}} {
  %w = "lb.constant"() {symbol = @w} : () -> !cpu
  %d_y = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %w, %d_y) {callee = @add, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!cpu, !cpu, !cpu) -> !cpu
  func.return %y : !cpu
}
// becomes
func.func @add(%x: !m, %w: !mfast, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %w : !m, !mfast) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !cpu) -> !cpu attributes {lb.input_names = ["x"]} {
  %w = "lb.constant"() {symbol = @w} : () -> !fast
  %d_y = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %w, %d_y) {callee = @add, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!cpu, !fast, !cpu) -> !cpu
  func.return %y : !cpu
}
