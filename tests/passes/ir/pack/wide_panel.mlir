// pack.wide_panel packs the weights of a product with one row in panels of several vectors, which are read in order.

!a = tensor<4x3xf32, #lb.vdevice<0, "global">>
!ma = memref<4x3xf32, "global">
!b = tensor<3x16xf32, #lb.vdevice<0, "global">>
!mb = memref<3x16xf32, "global">
!y = tensor<4x16xf32, #lb.vdevice<0, "global">>
!my = memref<4x16xf32, "global">
!a1 = tensor<1x3xf32, #lb.vdevice<0, "global">>
!ma1 = memref<1x3xf32, "global">
!y1 = tensor<1x16xf32, #lb.vdevice<0, "global">>
!my1 = memref<1x16xf32, "global">
#xk = affine_map<(d0, d1, d2) -> (d0, d2)>
#wk = affine_map<(d0, d1, d2) -> (d2, d1)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>

// ---- one row is multiplied by one panel of 16 columns
func.func @product(%x: !ma1, %w: !mb, %y: !my1) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my1)
  linalg.generic {indexing_maps = [#xk, #wk, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !ma1, !mb) outs(%y : !my1) attrs = {lb.extents = [1 : i64, 16 : i64, 3 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a1) -> !y1 {
  %w = "lb.constant"() {symbol = @w} : () -> !b
  %d_y = bufferization.alloc_tensor() : !y1
  %y = "lb.call"(%x, %w, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!a1, !b, !y1) -> !y1
  func.return %y : !y1
}
// becomes
func.func @product(%x: !ma1, %w: !mb, %y: !my1) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my1)
  linalg.generic {indexing_maps = [#xk, #wk, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !ma1, !mb) outs(%y : !my1) attrs = {lb.extents = [1 : i64, 16 : i64, 3 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a1) -> !y1 {
  %0 = "lb.constant"() {symbol = @w_1} : () -> tensor<1x3x16xf32, #lb.vdevice<0, "global">>
  %1 = bufferization.alloc_tensor() : !y1
  %y = "lb.call"(%x, %0, %1) {callee = @product_p1, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!a1, tensor<1x3x16xf32, #lb.vdevice<0, "global">>, !y1) -> !y1
  func.return %y : !y1
}
func.func @product_p1(%0: !ma1, %1: memref<1x3x16xf32, "global">, %2: !my1) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !my1)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2)>, affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, ((d1 * 16) + d3))>], iterator_types = ["parallel", "parallel", "reduction", "parallel"]} ins(%0, %1 : !ma1, memref<1x3x16xf32, "global">) outs(%2 : !my1) attrs = {lb.extents = [1 : i64, 1 : i64, 3 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}

// ---- not for four rows, whose sums take the registers
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
