// fuse.reshape gives an elementwise call the shape that its operand has before a reshape, so that it can be fused with
// what computes it.

!x = tensor<4x4x8xf32, #lb.vdevice<0, "global">>
!mx = memref<4x4x8xf32, "global">
!t = tensor<4x4xf32, #lb.vdevice<0, "global">>
!m = memref<4x4xf32, "global">
!f = tensor<16xf32, #lb.vdevice<0, "global">>
!mf = memref<16xf32, "global">
!g = tensor<2x8xf32, #lb.vdevice<0, "global">>
!mg = memref<2x8xf32, "global">
!b = tensor<8xf32, #lb.vdevice<0, "global">>
!mb = memref<8xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>

// ---- a negation has the loops of the sum before the reshape, and joins it
func.func @sums(%x: !mx, %y: !m) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !m)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y : !m) attrs = {lb.extents = [4 : i64, 4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @negate(%x: !mf, %y: !mf) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : !mf) outs(%y : !mf) attrs = {lb.extents = [16 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !f {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %f = "lb.view"(%y) {offset = 0 : i64} : (!t) -> !f
  %d_z = bufferization.alloc_tensor() : !f
  %z = "lb.call"(%f, %d_z) {callee = @negate, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!f, !f) -> !f
  func.return %z : !f
}
// becomes
func.func @sums_negate_1(%x: !mx, %y: !m) attributes {lb.prim} {
  %y_1 = memref.alloc() : !m
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y_1 : !m)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y_1 : !m) attrs = {lb.extents = [4 : i64, 4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y_1 : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32):
    %r_1 = arith.negf %a_1 : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @main(%x: !x) -> !f {
  %0 = bufferization.alloc_tensor() : !t
  %1 = "lb.call"(%x, %0) {callee = @sums_negate_1, operandSegmentSizes = array<i32: 1, 1>, node = "sums+negate"} : (!x, !t) -> !t
  %z = "lb.view"(%1) {offset = 0 : i64} : (!t) -> !f
  func.return %z : !f
}

// ---- not where the bias would have a part of a dimension
func.func @sums(%x: !mx, %y: !m) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !m)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y : !m) attrs = {lb.extents = [4 : i64, 4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @bias(%x: !mg, %w: !mb, %y: !mg) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : !mg, !mb) outs(%y : !mg) attrs = {lb.extents = [2 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x, %b: !b) -> !g {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %g = "lb.view"(%y) {offset = 0 : i64} : (!t) -> !g
  %d_z = bufferization.alloc_tensor() : !g
  %z = "lb.call"(%g, %b, %d_z) {callee = @bias, node = "bias", operandSegmentSizes = array<i32: 2, 1>} : (!g, !b, !g) -> !g
  func.return %z : !g
}
// unchanged
