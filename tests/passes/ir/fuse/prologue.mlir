// fuse.prologue inlines an elementwise call into the plain reduction that reads its result, when no other rule has.

!t = tensor<64x128xf32, #lb.vdevice<0, "global">>
!m = memref<64x128xf32, "global">
!s = tensor<64xf32, #lb.vdevice<0, "global">>
!n = memref<64xf32, "global">
!w = tensor<128x8xf32, #lb.vdevice<0, "global">>
!mw = memref<128x8xf32, "global">
!p = tensor<64x8xf32, #lb.vdevice<0, "global">>
!mp = memref<64x8xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// ---- a sum doubles what it reads
// disabled: fuse.row_chain
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @sums(%x: !m, %y: !n) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !n)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !m) outs(%y : !n) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !s {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "double", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !s
  %z = "lb.call"(%y, %d_z) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!t, !s) -> !s
  func.return %z : !s
}
// becomes
func.func @double_sums_1(%x: !m, %y: !n) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !n)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !m) outs(%y : !n) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    %r_1 = arith.addf %b, %r : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @main(%x: !t) -> !s {
  %d_z = bufferization.alloc_tensor() : !s
  %z = "lb.call"(%x, %d_z) {callee = @double_sums_1, operandSegmentSizes = array<i32: 1, 1>, node = "double+sums"} : (!t, !s) -> !s
  func.return %z : !s
}

// ---- not in a contraction, which the kernel generator knows by its two factors
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @dot(%x: !m, %w: !m, %y: !n) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !n)
  linalg.generic {indexing_maps = [#id, #id, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %w : !m, !m) outs(%y : !n) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t, %w: !t) -> !s {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "double", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !s
  %z = "lb.call"(%y, %w, %d_z) {callee = @dot, node = "dot", operandSegmentSizes = array<i32: 2, 1>} : (!t, !t, !s) -> !s
  func.return %z : !s
}
// becomes
func.func @double_dot_1(%x: !m, %w: !m, %y: !n) attributes {lb.prim} {
  %y_1 = memref.alloc() : !m
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y_1 : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !n)
  linalg.generic {indexing_maps = [#id, #id, #row], iterator_types = ["parallel", "reduction"]} ins(%y_1, %w : !m, !m) outs(%y : !n) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32, %c: f32):
    %p = arith.mulf %a_1, %b_1 : f32
    %r_1 = arith.addf %c, %p : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @main(%x: !t, %w: !t) -> !s {
  %d_z = bufferization.alloc_tensor() : !s
  %z = "lb.call"(%x, %w, %d_z) {callee = @double_dot_1, operandSegmentSizes = array<i32: 2, 1>, node = "double+dot"} : (!t, !t, !s) -> !s
  func.return %z : !s
}

// ---- not in a matrix product, which would double each element several times
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @product(%x: !m, %w: !mw, %y: !mp) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mp)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !m, !mw) outs(%y : !mp) attrs = {lb.extents = [64 : i64, 8 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t, %w: !w) -> !p {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "double", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !p
  %z = "lb.call"(%y, %w, %d_z) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!t, !w, !p) -> !p
  func.return %z : !p
}
// unchanged
