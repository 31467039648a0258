// pack.matrix_product packs the weights of a matrix product in panels of columns. A vector of this target has 8 lanes
// of float32.

!a = tensor<4x3xf32, #lb.vdevice<0, "global">>
!ma = memref<4x3xf32, "global">
!b = tensor<3x16xf32, #lb.vdevice<0, "global">>
!mb = memref<3x16xf32, "global">
!y = tensor<4x16xf32, #lb.vdevice<0, "global">>
!my = memref<4x16xf32, "global">
!b4 = tensor<3x4xf32, #lb.vdevice<0, "global">>
!mb4 = memref<3x4xf32, "global">
!y4 = tensor<4x4xf32, #lb.vdevice<0, "global">>
!my4 = memref<4x4xf32, "global">
!b20 = tensor<3x20xf32, #lb.vdevice<0, "global">>
!mb20 = memref<3x20xf32, "global">
!y20 = tensor<4x20xf32, #lb.vdevice<0, "global">>
!my20 = memref<4x20xf32, "global">
#xk = affine_map<(d0, d1, d2) -> (d0, d2)>
#wk = affine_map<(d0, d1, d2) -> (d2, d1)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>

// ---- 16 columns are two panels of one vector
func.func @product(%x: !ma, %w: !mb, %y: !my) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my)
  linalg.generic {indexing_maps = [#xk, #wk, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !ma, !mb) outs(%y : !my) attrs = {lb.extents = [4 : i64, 16 : i64, 3 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a) -> !y {
  %w = "lb.constant"() {symbol = @w} : () -> !b
  %d_y = bufferization.alloc_tensor() : !y
  %y = "lb.call"(%x, %w, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!a, !b, !y) -> !y
  func.return %y : !y
}
// becomes
func.func @product(%x: !ma, %w: !mb, %y: !my) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my)
  linalg.generic {indexing_maps = [#xk, #wk, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !ma, !mb) outs(%y : !my) attrs = {lb.extents = [4 : i64, 16 : i64, 3 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a) -> !y {
  %0 = "lb.constant"() {symbol = @w_1} : () -> tensor<2x3x8xf32, #lb.vdevice<0, "global">>
  %1 = bufferization.alloc_tensor() : !y
  %y = "lb.call"(%x, %0, %1) {callee = @product_p1, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!a, tensor<2x3x8xf32, #lb.vdevice<0, "global">>, !y) -> !y
  func.return %y : !y
}
func.func @product_p1(%0: !ma, %1: memref<2x3x8xf32, "global">, %2: !my) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !my)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2)>, affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, ((d1 * 8) + d3))>], iterator_types = ["parallel", "parallel", "reduction", "parallel"]} ins(%0, %1 : !ma, memref<2x3x8xf32, "global">) outs(%2 : !my) attrs = {lb.extents = [4 : i64, 2 : i64, 3 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}

// ---- the last of three panels has 4 of 20 columns and 4 lanes of padding, which lb.bounds leaves out
func.func @product(%x: !ma, %w: !mb20, %y: !my20) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my20)
  linalg.generic {indexing_maps = [#xk, #wk, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !ma, !mb20) outs(%y : !my20) attrs = {lb.extents = [4 : i64, 20 : i64, 3 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a) -> !y20 {
  %w = "lb.constant"() {symbol = @w} : () -> !b20
  %d_y = bufferization.alloc_tensor() : !y20
  %y = "lb.call"(%x, %w, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!a, !b20, !y20) -> !y20
  func.return %y : !y20
}
// becomes
func.func @product(%x: !ma, %w: !mb20, %y: !my20) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my20)
  linalg.generic {indexing_maps = [#xk, #wk, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !ma, !mb20) outs(%y : !my20) attrs = {lb.extents = [4 : i64, 20 : i64, 3 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a) -> !y20 {
  %0 = "lb.constant"() {symbol = @w_1} : () -> tensor<3x3x8xf32, #lb.vdevice<0, "global">>
  %1 = bufferization.alloc_tensor() : !y20
  %y = "lb.call"(%x, %0, %1) {callee = @product_p1, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!a, tensor<3x3x8xf32, #lb.vdevice<0, "global">>, !y20) -> !y20
  func.return %y : !y20
}
func.func @product_p1(%0: !ma, %1: memref<3x3x8xf32, "global">, %2: !my20) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !my20)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2)>, affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, ((d1 * 8) + d3))>], iterator_types = ["parallel", "parallel", "reduction", "parallel"]} ins(%0, %1 : !ma, memref<3x3x8xf32, "global">) outs(%2 : !my20) attrs = {lb.extents = [4 : i64, 3 : i64, 3 : i64, 8 : i64], lb.bounds = [[1 : i64, 3 : i64, 8 : i64, 20 : i64]]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}

// ---- not fewer columns than a vector has lanes
func.func @product(%x: !ma, %w: !mb4, %y: !my4) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my4)
  linalg.generic {indexing_maps = [#xk, #wk, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !ma, !mb4) outs(%y : !my4) attrs = {lb.extents = [4 : i64, 4 : i64, 3 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a) -> !y4 {
  %w = "lb.constant"() {symbol = @w} : () -> !b4
  %d_y = bufferization.alloc_tensor() : !y4
  %y = "lb.call"(%x, %w, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!a, !b4, !y4) -> !y4
  func.return %y : !y4
}
// unchanged
