// fuse.temporary inlines an elementwise stage of a merged PrimFunc into the one stage that reads its temporary.

!t = tensor<64x128xf32, #lb.vdevice<0, "global">>
!m = memref<64x128xf32, "global">
!s = tensor<64xf32, #lb.vdevice<0, "global">>
!n = memref<64xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
!r = tensor<128x64xf32, #lb.vdevice<0, "global">>
!mr = memref<128x64xf32, "global">
#swap = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>

// ---- a stage reads the operand of the stage before it, whose temporary is gone
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

// ---- not the temporary of a sum, which is computed before it is read
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
func.func @negate(%x: !n, %y: !n) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : !n) outs(%y : !n) attrs = {lb.extents = [64 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !s {
  %d_y = bufferization.alloc_tensor() : !s
  %y = "lb.call"(%x, %d_y) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!t, !s) -> !s
  %d_z = bufferization.alloc_tensor() : !s
  %z = "lb.call"(%y, %d_z) {callee = @negate, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!s, !s) -> !s
  func.return %z : !s
}
// becomes
func.func @sums_negate_1(%x: !m, %y: !n) attributes {lb.prim} {
  %y_1 = memref.alloc() : !n
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y_1 : !n)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !m) outs(%y_1 : !n) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%y_1 : !n) outs(%y : !n) attrs = {lb.extents = [64 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32):
    %r_1 = arith.negf %a_1 : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @main(%x: !t) -> !s {
  %d_z = bufferization.alloc_tensor() : !s
  %z = "lb.call"(%x, %d_z) {callee = @sums_negate_1, operandSegmentSizes = array<i32: 1, 1>, node = "sums+negate"} : (!t, !s) -> !s
  func.return %z : !s
}

// ---- not a temporary that is written in another order than it is read
func.func @transpose(%x: !m, %y: !mr) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #swap], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !mr) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @negate(%x: !mr, %y: !mr) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mr) outs(%y : !mr) attrs = {lb.extents = [128 : i64, 64 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !r {
  %d_y = bufferization.alloc_tensor() : !r
  %y = "lb.call"(%x, %d_y) {callee = @transpose, node = "transpose", operandSegmentSizes = array<i32: 1, 1>} : (!t, !r) -> !r
  %d_z = bufferization.alloc_tensor() : !r
  %z = "lb.call"(%y, %d_z) {callee = @negate, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!r, !r) -> !r
  func.return %z : !r
}
// becomes
func.func @transpose_negate_1(%x: !m, %y: !mr) attributes {lb.prim} {
  %y_1 = memref.alloc() : !mr
  linalg.generic {indexing_maps = [#id, #swap], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y_1 : !mr) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y_1 : !mr) outs(%y : !mr) attrs = {lb.extents = [128 : i64, 64 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32):
    %r = arith.negf %a_1 : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !r {
  %d_z = bufferization.alloc_tensor() : !r
  %z = "lb.call"(%x, %d_z) {callee = @transpose_negate_1, operandSegmentSizes = array<i32: 1, 1>, node = "transpose+negate"} : (!t, !r) -> !r
  func.return %z : !r
}
