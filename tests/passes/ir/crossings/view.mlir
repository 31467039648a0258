// crossings.view copies nothing where both sides of a crossing use the same memory. lb.to_vdevice says why it is a
// view or a copy.

!a = tensor<4xf32, #lb.vdevice<0, "global">>
!b = tensor<4xf32, #lb.vdevice<1, "global">>
!m = memref<4xf32, "global">
#id = affine_map<(d0) -> (d0)>

// ---- a GPU and a CPU exchange a tensor in memory of the CPU
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

// ---- a CPU works in memory of a device that is not coherent
// target npu: {"kind": "opencl", "shares": [], "memory": [{"scope": "global", "host_access": "read_write", "coherent": false, "coherence_granule": 64, "pinned": true}]}
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
  %b = "lb.to_vdevice"(%x) : (!a) -> !b
  %d_y = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%b, %d_y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) : (!b) -> !a
  %d_z = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %f = "lb.to_vdevice"(%z) : (!a) -> !b
  %d_w = bufferization.alloc_tensor() : !b
  %w = "lb.call"(%f, %d_w) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %h = "lb.to_vdevice"(%w) : (!b) -> !a
  func.return %h : !a
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
  %b = "lb.to_vdevice"(%x) {view, why = "the CPU works in memory of npu"} : (!a) -> !b
  %d_y = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%b, %d_y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) {view, why = "the CPU works in memory of npu"} : (!b) -> !a
  %d_z = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %f = "lb.to_vdevice"(%z) {view, why = "the CPU works in memory of npu"} : (!a) -> !b
  %d_w = bufferization.alloc_tensor() : !b
  %w = "lb.call"(%f, %d_w) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %h = "lb.to_vdevice"(%w) {view, why = "the CPU works in memory of npu"} : (!b) -> !a
  func.return %h : !a
}

// ---- what the CPU computes first and last is in its memory: inputs and outputs are copied
// target cpu: llvm -mcpu=x86-64-v3
// target npu: {"kind": "opencl", "shares": [], "memory": [{"scope": "global", "host_access": "read_write", "coherent": false, "coherence_granule": 64, "pinned": true}]}
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a) -> !a {
  %b = "lb.to_vdevice"(%x) : (!a) -> !b
  %d_y = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%b, %d_y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) : (!b) -> !a
  %d_z = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %f = "lb.to_vdevice"(%z) : (!a) -> !b
  %d_w = bufferization.alloc_tensor() : !b
  %w = "lb.call"(%f, %d_w) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %h = "lb.to_vdevice"(%w) : (!b) -> !a
  func.return %h : !a
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
  %b = "lb.to_vdevice"(%x) {why = "its place is on the other side: an input"} : (!a) -> !b
  %d_y = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%b, %d_y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) {view, why = "the CPU works in memory of npu"} : (!b) -> !a
  %d_z = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %f = "lb.to_vdevice"(%z) {view, why = "the CPU works in memory of npu"} : (!a) -> !b
  %d_w = bufferization.alloc_tensor() : !b
  %w = "lb.call"(%f, %d_w) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %h = "lb.to_vdevice"(%w) {why = "its place is on the other side: an output"} : (!b) -> !a
  func.return %h : !a
}

// ---- not in memory past the caches of the CPU
// target npu: {"kind": "opencl", "shares": [], "memory": [{"scope": "global", "host_access": "read_write", "coherent": false, "coherence_granule": 64, "pinned": true, "cached": false}]}
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
  %b = "lb.to_vdevice"(%x) : (!a) -> !b
  %d_y = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%b, %d_y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) : (!b) -> !a
  %d_z = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %f = "lb.to_vdevice"(%z) : (!a) -> !b
  %d_w = bufferization.alloc_tensor() : !b
  %w = "lb.call"(%f, %d_w) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %h = "lb.to_vdevice"(%w) : (!b) -> !a
  func.return %h : !a
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
  %b = "lb.to_vdevice"(%x) {why = "npu has memory of its own, and it is past the host's caches: a copy costs less"} : (!a) -> !b
  %d_y = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%b, %d_y) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) {why = "npu has memory of its own, and it is past the host's caches: a copy costs less"} : (!b) -> !a
  %d_z = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %f = "lb.to_vdevice"(%z) {why = "npu has memory of its own, and it is past the host's caches: a copy costs less"} : (!a) -> !b
  %d_w = bufferization.alloc_tensor() : !b
  %w = "lb.call"(%f, %d_w) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %h = "lb.to_vdevice"(%w) {why = "npu has memory of its own, and it is past the host's caches: a copy costs less"} : (!b) -> !a
  func.return %h : !a
}

// ---- not memory that a GPU shares with what is no CPU
// target gpu: {"kind": "opencl", "shares": [["opencl", "global"]]}
// target npu: {"kind": "opencl", "shares": []}
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
  %c = "lb.to_vdevice"(%y) {why = "neither side is a CPU that works in the other's memory"} : (!a) -> !b
  %d_z = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %back = "lb.to_vdevice"(%z) {why = "neither side is a CPU that works in the other's memory"} : (!b) -> !a
  func.return %back : !a
}

// ---- not where each has memory of its own
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
  %c = "lb.to_vdevice"(%y) {why = "gpu has memory of its own, and it is neither coherent nor pinned: a barrier may be a copy"} : (!a) -> !b
  %d_z = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %d_z) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %f = "lb.to_vdevice"(%z) {why = "gpu has memory of its own, and it is neither coherent nor pinned: a barrier may be a copy"} : (!b) -> !a
  %d_w = bufferization.alloc_tensor() : !a
  %w = "lb.call"(%f, %d_w) {callee = @double, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  func.return %w : !a
}
