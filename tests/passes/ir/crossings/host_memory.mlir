// crossings.host_memory puts inputs and outputs in memory of the CPU that the first device shares, if code of both
// uses them.

!a = tensor<4xf32, #lb.vdevice<0, "global">>
!b = tensor<4xf32, #lb.vdevice<1, "global">>
!m = memref<4xf32, "global">
#id = affine_map<(d0) -> (d0)>

// ---- an output that the CPU computes stays in its memory, and the GPU works there too
// target gpu: {"kind": "opencl", "shares": [["cpu", "global"]]}
// target cpu: llvm -mcpu=x86-64-v3
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a) -> !a {
  %d_y = bufferization.alloc_tensor() : !a
  %y = "lb.call"(%x, %d_y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %c = "lb.to_vdevice"(%y) : (!a) -> !b
  %d_z = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %back = "lb.to_vdevice"(%z) : (!b) -> !a
  func.return %back : !a
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
func.func @main(%x: !a) -> !a {
  %x_1 = "lb.to_vdevice"(%x) {node = "host memory", view, why = "both sides use memory of the host"} : (!a) -> !b
  %d_y = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%x_1, %d_y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) {view, why = "both sides use memory of the host"} : (!b) -> !a
  %d_z = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  func.return %z : !a
}

// ---- not where the GPU alone uses inputs and outputs
// target gpu: {"kind": "opencl", "shares": [["cpu", "global"]]}
// target cpu: llvm -mcpu=x86-64-v3
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a) -> !a {
  %d_y = bufferization.alloc_tensor() : !a
  %y = "lb.call"(%x, %d_y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %c = "lb.to_vdevice"(%y) : (!a) -> !b
  %d_z = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %f = "lb.to_vdevice"(%z) : (!b) -> !a
  %d_w = bufferization.alloc_tensor() : !a
  %w = "lb.call"(%f, %d_w) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  func.return %w : !a
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
func.func @main(%x: !a) -> !a {
  %d_y = bufferization.alloc_tensor() : !a
  %y = "lb.call"(%x, %d_y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %c = "lb.to_vdevice"(%y) {view, why = "both sides use memory of the host"} : (!a) -> !b
  %d_z = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %f = "lb.to_vdevice"(%z) {view, why = "both sides use memory of the host"} : (!b) -> !a
  %d_w = bufferization.alloc_tensor() : !a
  %w = "lb.call"(%f, %d_w) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  func.return %w : !a
}

// ---- not where the GPU has memory of its own
// target gpu: {"kind": "opencl", "shares": []}
// target cpu: llvm -mcpu=x86-64-v3
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a) -> !a {
  %d_y = bufferization.alloc_tensor() : !a
  %y = "lb.call"(%x, %d_y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %c = "lb.to_vdevice"(%y) : (!a) -> !b
  %d_z = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %back = "lb.to_vdevice"(%z) : (!b) -> !a
  func.return %back : !a
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
func.func @main(%x: !a) -> !a {
  %d_y = bufferization.alloc_tensor() : !a
  %y = "lb.call"(%x, %d_y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %c = "lb.to_vdevice"(%y) {why = "gpu has memory of its own, and it is neither coherent nor pinned: a barrier may be a copy"} : (!a) -> !b
  %d_z = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %back = "lb.to_vdevice"(%z) {why = "gpu has memory of its own, and it is neither coherent nor pinned: a barrier may be a copy"} : (!b) -> !a
  func.return %back : !a
}
