// fuse.epilogue merges an elementwise call into the call that computes its operand, as its last stage.

!x = tensor<64x128x2xf32, #lb.vdevice<0, "global">>
!mx = memref<64x128x2xf32, "global">
!t = tensor<64x128xf32, #lb.vdevice<0, "global">>
!m = memref<64x128xf32, "global">
!r = tensor<128x64xf32, #lb.vdevice<0, "global">>
!mr = memref<128x64xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
#swap = affine_map<(d0, d1) -> (d1, d0)>

// ---- what follows a sum joins its kernel as a second stage
func.func @sums(%x: !mx, %y: !m) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @negate(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%y, %d_z) {callee = @negate, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %z : !t
}
// becomes
func.func @sums_negate_1(%x: !mx, %y: !m) attributes {lb.prim} {
  %y_1 = memref.alloc() : !m
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y_1 : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y_1 : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y_1 : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32):
    %r_1 = arith.negf %a_1 : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @main(%x: !x) -> !t {
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%x, %d_z) {callee = @sums_negate_1, operandSegmentSizes = array<i32: 1, 1>, node = "sums+negate"} : (!x, !t) -> !t
  func.return %z : !t
}

// ---- not where elements are read in another order
func.func @sums(%x: !mx, %y: !m) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @negate(%x: !m, %y: !mr) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !mr) attrs = {lb.extents = [128 : i64, 64 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !r {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !r
  %z = "lb.call"(%y, %d_z) {callee = @negate, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!t, !r) -> !r
  func.return %z : !r
}
// unchanged

// ---- not where another reads the sum
func.func @sums(%x: !mx, %y: !m) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @negate(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> (!t, !t) {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%y, %d_z) {callee = @negate, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y, %z : !t, !t
}
// unchanged
