// fuse merges calls into fewer PrimFuncs.

!t = tensor<4x8xf32, #lb.vdevice<0, "global">>
!s = tensor<4xf32, #lb.vdevice<0, "global">>
!m = memref<4x8xf32, "global">
!n = memref<4xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// ---- an elementwise kernel disappears into its one reader: the tensor between them needs no memory
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @square(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d) {callee = @double, node = "double", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %e = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%y, %e) {callee = @square, node = "square", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %z : !t
}
// becomes
func.func @double_square_1(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    %c_1 = arith.mulf %c, %c : f32
    linalg.yield %c_1 : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %e = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%x, %e) {callee = @double_square_1, operandSegmentSizes = array<i32: 1, 1>, node = "double+square"} : (!t, !t) -> !t
  func.return %z : !t
}

// ---- what follows a sum joins its kernel as a second stage
func.func @sums(%x: !m, %y: !n) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !n)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !m) outs(%y : !n) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %b, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @negate(%x: !n, %y: !n) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : !n) outs(%y : !n) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !t) -> !s {
  %d = bufferization.alloc_tensor() : !s
  %y = "lb.call"(%x, %d) {callee = @sums, node = "sums", operandSegmentSizes = array<i32: 1, 1>} : (!t, !s) -> !s
  %e = bufferization.alloc_tensor() : !s
  %z = "lb.call"(%y, %e) {callee = @negate, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!s, !s) -> !s
  func.return %z : !s
}
// becomes
func.func @sums_negate_1(%x: !m, %y: !n) attributes {lb.prim} {
  %y_1 = memref.alloc() : !n
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y_1 : !n)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !m) outs(%y_1 : !n) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %b, %a : f32
    linalg.yield %c : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%y_1 : !n) outs(%y : !n) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32):
    %c_1 = arith.negf %a_1 : f32
    linalg.yield %c_1 : f32
  }
  func.return
}
func.func @main(%x: !t) -> !s {
  %e = bufferization.alloc_tensor() : !s
  %z = "lb.call"(%x, %e) {callee = @sums_negate_1, operandSegmentSizes = array<i32: 1, 1>, node = "sums+negate"} : (!t, !s) -> !s
  func.return %z : !s
}
