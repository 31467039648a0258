// fuse.producer inlines an elementwise call into the only call that reads its result.

!t = tensor<64x128xf32, #lb.vdevice<0, "global">>
!m = memref<64x128xf32, "global">
!s = tensor<128xf32, #lb.vdevice<0, "global">>
!n = memref<128xf32, "global">
!fast = tensor<64x128xf32, #lb.vdevice<0, "global.fast">>
!mfast = memref<64x128xf32, "global.fast">
!f = tensor<8192xf32, #lb.vdevice<0, "global">>
!mf = memref<8192xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#one = affine_map<(d0) -> (d0)>
#flat = affine_map<(d0, d1) -> (d0 * 128 + d1)>

// ---- the tensor between two elementwise calls needs no memory
// disabled: fuse.prologue
// disabled: fuse.row_chain
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @square(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "double", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%y, %d_z) {callee = @square, node = "square", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %z : !t
}
// becomes
func.func @double_square_1(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    %r_1 = arith.mulf %r, %r : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%x, %d_z) {callee = @double_square_1, operandSegmentSizes = array<i32: 1, 1>, node = "double+square"} : (!t, !t) -> !t
  func.return %z : !t
}

// ---- not where another reads the result too
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @square(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> (!t, !t) {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "double", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%y, %d_z) {callee = @square, node = "square", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y, %z : !t, !t
}
// unchanged

// ---- not where the reader would repeat the work for each row
func.func @double(%x: !n, %y: !n) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : !n) outs(%y : !n) attrs = {lb.extents = [128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @add(%x: !m, %w: !n, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : !m, !n) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t, %s: !s) -> !t {
  %d_y = bufferization.alloc_tensor() : !s
  %y = "lb.call"(%s, %d_y) {callee = @double, node = "double", operandSegmentSizes = array<i32: 1, 1>} : (!s, !s) -> !s
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%x, %y, %d_z) {callee = @add, node = "add", operandSegmentSizes = array<i32: 2, 1>} : (!t, !s, !t) -> !t
  func.return %z : !t
}
// unchanged

// ---- not where the reader reads it in two shapes
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @add(%x: !m, %w: !mf, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #flat, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : !m, !mf) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "double", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %f = "lb.view"(%y) {offset = 0 : i64} : (!t) -> !f
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%y, %f, %d_z) {callee = @add, node = "add", operandSegmentSizes = array<i32: 2, 1>} : (!t, !f, !t) -> !t
  func.return %z : !t
}
// unchanged

// ---- not where a scope was requested for the result
// target cpu: {"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.fast", "host_access": "read_write", "coherent": true}]}
func.func @double(%x: !m, %y: !mfast) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !mfast) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @square(%x: !mfast, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mfast) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !fast
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "double", operandSegmentSizes = array<i32: 1, 1>} : (!t, !fast) -> !fast
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%y, %d_z) {callee = @square, node = "square", operandSegmentSizes = array<i32: 1, 1>} : (!fast, !t) -> !t
  func.return %z : !t
}
// unchanged
