// place.node lets nodes compute on the vdevice that was requested for them, in the scope that was requested for their
// results.

!cpu = tensor<4xf32, #lb.vdevice<0, "global">>
!npu = tensor<4xf32, #lb.vdevice<1, "global">>
!fast = tensor<4xf32, #lb.vdevice<0, "global.fast">>
!m = memref<4xf32, "global">
!mfast = memref<4xf32, "global.fast">
#id = affine_map<(d0) -> (d0)>

// ---- operands are moved to a node on another vdevice, and its result is moved back
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
func.func @main(%x: !cpu) -> !cpu attributes {lb.place = {"b*" = #lb.vdevice<1, "global">}} {
  %d_y = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %d_z = bufferization.alloc_tensor() : !cpu
  %z = "lb.call"(%y, %d_z) {callee = @double, node = "b1", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  func.return %z : !cpu
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
func.func @main(%x: !cpu) -> !cpu {
  %d_y = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %d_z = bufferization.alloc_tensor() : !npu
  %0 = "lb.to_vdevice"(%y) {node = "a to npu"} : (!cpu) -> !npu
  %z = "lb.call"(%0, %d_z) {callee = @double, node = "b1", operandSegmentSizes = array<i32: 1, 1>} : (!npu, !npu) -> !npu
  %1 = "lb.to_vdevice"(%z) {node = "b1 to cpu"} : (!npu) -> !cpu
  func.return %1 : !cpu
}

// ---- a tensor that two nodes there read is moved once
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
func.func @main(%x: !cpu) -> (!cpu, !cpu) attributes {lb.place = {"b*" = #lb.vdevice<1, "global">}} {
  %d_y = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "b1", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %d_z = bufferization.alloc_tensor() : !cpu
  %z = "lb.call"(%x, %d_z) {callee = @double, node = "b2", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
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
func.func @main(%x: !cpu) -> (!cpu, !cpu) {
  %d_y = bufferization.alloc_tensor() : !npu
  %0 = "lb.to_vdevice"(%x) {node = "input 0 to npu"} : (!cpu) -> !npu
  %y = "lb.call"(%0, %d_y) {callee = @double, node = "b1", operandSegmentSizes = array<i32: 1, 1>} : (!npu, !npu) -> !npu
  %d_z = bufferization.alloc_tensor() : !npu
  %z = "lb.call"(%0, %d_z) {callee = @double, node = "b2", operandSegmentSizes = array<i32: 1, 1>} : (!npu, !npu) -> !npu
  %1 = "lb.to_vdevice"(%y) {node = "b1 to cpu"} : (!npu) -> !cpu
  %2 = "lb.to_vdevice"(%z) {node = "b2 to cpu"} : (!npu) -> !cpu
  func.return %1, %2 : !cpu, !cpu
}

// ---- a kernel writes its result into another scope, and its reader reads it there
// target cpu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.fast", "host_access": "read_write", "coherent": true}]}
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !cpu) -> !cpu attributes {lb.place = {"a" = #lb.vdevice<0, "global.fast">}} {
  %d_y = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %d_z = bufferization.alloc_tensor() : !cpu
  %z = "lb.call"(%y, %d_z) {callee = @double, node = "b1", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  func.return %z : !cpu
}
// becomes
func.func @double(%x: !m, %y: !mfast) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !mfast) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @double_s0(%x: !mfast, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mfast) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !cpu) -> !cpu {
  %d_y = bufferization.alloc_tensor() : !fast
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !fast) -> !fast
  %d_z = bufferization.alloc_tensor() : !cpu
  %z = "lb.call"(%y, %d_z) {callee = @double_s0, node = "b1", operandSegmentSizes = array<i32: 1, 1>} : (!fast, !cpu) -> !cpu
  func.return %z : !cpu
}

// ---- not a node that is on that vdevice already
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
func.func @main(%x: !cpu) -> !cpu attributes {lb.place = {"a" = #lb.vdevice<0, "global">}} {
  %d_y = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %d_z = bufferization.alloc_tensor() : !cpu
  %z = "lb.call"(%y, %d_z) {callee = @double, node = "b1", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  func.return %z : !cpu
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
func.func @main(%x: !cpu) -> !cpu {
  %d_y = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %d_z = bufferization.alloc_tensor() : !cpu
  %z = "lb.call"(%y, %d_z) {callee = @double, node = "b1", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  func.return %z : !cpu
}
