// fuse.row_chain merges calls that work on the same rows, one row after the other.

!t = tensor<4x8xf32, #lb.vdevice<0, "global">>
!m = memref<4x8xf32, "global">
!s = tensor<4xf32, #lb.vdevice<0, "global">>
!n = memref<4xf32, "global">
!w = tensor<8x8xf32, #lb.vdevice<0, "global">>
!mw = memref<8x8xf32, "global">
!l = tensor<4x8192xf32, #lb.vdevice<0, "global">>
!ml = memref<4x8192xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// ---- rows are summed and scaled by their sum in one kernel, row by row
func.func @sums(%x: !m, %y: !n) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !n)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !m) outs(%y : !n) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @scale(%x: !m, %w: !n, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : !m, !n) outs(%y : !m) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_s = bufferization.alloc_tensor() : !s
  %s = "lb.call"(%x, %d_s) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!t, !s) -> !s
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%x, %s, %d_z) {callee = @scale, node = "scale", operandSegmentSizes = array<i32: 2, 1>} : (!t, !s, !t) -> !t
  func.return %z : !t
}
// becomes
func.func @sums_scale_1(%x: !m, %y: !m) attributes {lb.prim} {
  %y_1 = memref.alloc() : !n
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y_1 : !n)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !m) outs(%y_1 : !n) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %y_1 : !m, !n) outs(%y : !m) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32, %c: f32):
    %r_1 = arith.mulf %a_1, %b_1 : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%x, %d_z) {callee = @sums_scale_1, operandSegmentSizes = array<i32: 1, 1>, node = "sums+scale"} : (!t, !t) -> !t
  func.return %z : !t
}

// ---- not rows that are longer than what stays in L1
func.func @sums(%x: !ml, %y: !n) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !n)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !ml) outs(%y : !n) attrs = {lb.extents = [4 : i64, 8192 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @scale(%x: !ml, %w: !n, %y: !ml) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : !ml, !n) outs(%y : !ml) attrs = {lb.extents = [4 : i64, 8192 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !l) -> !l {
  %d_s = bufferization.alloc_tensor() : !s
  %s = "lb.call"(%x, %d_s) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!l, !s) -> !s
  %d_z = bufferization.alloc_tensor() : !l
  %z = "lb.call"(%x, %s, %d_z) {callee = @scale, node = "scale", operandSegmentSizes = array<i32: 2, 1>} : (!l, !s, !l) -> !l
  func.return %z : !l
}
// unchanged

// ---- not a contraction, which has tiles of several rows
func.func @product(%x: !m, %w: !mw, %y: !m) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !m)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !m, !mw) outs(%y : !m) attrs = {lb.extents = [4 : i64, 8 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @sums(%x: !m, %y: !n) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !n)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !m) outs(%y : !n) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t, %w: !w) -> !s {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %w, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!t, !w, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !s
  %z = "lb.call"(%y, %d_z) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!t, !s) -> !s
  func.return %z : !s
}
// unchanged
