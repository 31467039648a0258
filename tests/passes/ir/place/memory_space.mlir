// place.memory_space gives PrimFuncs the memory spaces of the operands that they are called with.

!cpu = tensor<4xf32, #lb.vdevice<0, "global">>
!fast = tensor<4xf32, #lb.vdevice<0, "global.fast">>
!m = memref<4xf32, "global">
!mfast = memref<4xf32, "global.fast">
#id = affine_map<(d0) -> (d0)>

// ---- a kernel that is called with operands in different scopes is one for each
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

// ---- not where all calls have the same scopes
// target cpu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.fast", "host_access": "read_write", "coherent": true}]}
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
  %z = "lb.call"(%y, %d_z) {callee = @double, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  func.return %z : !cpu
}
// unchanged
