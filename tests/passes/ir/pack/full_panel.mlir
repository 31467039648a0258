// pack.full_panel packs weights in panels without padding, where columns are not adjacent in the result.

!a = tensor<4x3xf32, #lb.vdevice<0, "global">>
!ma = memref<4x3xf32, "global">
!b12 = tensor<3x12xf32, #lb.vdevice<0, "global">>
!mb12 = memref<3x12xf32, "global">
!t12 = tensor<12x4xf32, #lb.vdevice<0, "global">>
!mt12 = memref<12x4xf32, "global">
!b13 = tensor<3x13xf32, #lb.vdevice<0, "global">>
!mb13 = memref<3x13xf32, "global">
!t13 = tensor<13x4xf32, #lb.vdevice<0, "global">>
!mt13 = memref<13x4xf32, "global">
#xk = affine_map<(d0, d1, d2) -> (d0, d2)>
#wk = affine_map<(d0, d1, d2) -> (d2, d1)>
#tout = affine_map<(d0, d1, d2) -> (d1, d0)>

// ---- 12 columns that are rows of the result are two panels of 6
func.func @product(%x: !ma, %w: !mb12, %y: !mt12) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mt12)
  linalg.generic {indexing_maps = [#xk, #wk, #tout], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !ma, !mb12) outs(%y : !mt12) attrs = {lb.extents = [4 : i64, 12 : i64, 3 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a) -> !t12 {
  %w = "lb.constant"() {symbol = @w} : () -> !b12
  %d_y = bufferization.alloc_tensor() : !t12
  %y = "lb.call"(%x, %w, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!a, !b12, !t12) -> !t12
  func.return %y : !t12
}
// becomes
func.func @product(%x: !ma, %w: !mb12, %y: !mt12) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mt12)
  linalg.generic {indexing_maps = [#xk, #wk, #tout], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !ma, !mb12) outs(%y : !mt12) attrs = {lb.extents = [4 : i64, 12 : i64, 3 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a) -> !t12 {
  %0 = "lb.constant"() {symbol = @w_1} : () -> tensor<2x3x6xf32, #lb.vdevice<0, "global">>
  %1 = bufferization.alloc_tensor() : !t12
  %y = "lb.call"(%x, %0, %1) {callee = @product_p1, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!a, tensor<2x3x6xf32, #lb.vdevice<0, "global">>, !t12) -> !t12
  func.return %y : !t12
}
func.func @product_p1(%0: !ma, %1: memref<2x3x6xf32, "global">, %2: !mt12) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !mt12)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2)>, affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (((d1 * 6) + d3), d0)>], iterator_types = ["parallel", "parallel", "reduction", "parallel"]} ins(%0, %1 : !ma, memref<2x3x6xf32, "global">) outs(%2 : !mt12) attrs = {lb.extents = [4 : i64, 2 : i64, 3 : i64, 6 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}

// ---- not 13 columns, of which only panels of one have no padding
func.func @product(%x: !ma, %w: !mb13, %y: !mt13) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mt13)
  linalg.generic {indexing_maps = [#xk, #wk, #tout], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !ma, !mb13) outs(%y : !mt13) attrs = {lb.extents = [4 : i64, 13 : i64, 3 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !a) -> !t13 {
  %w = "lb.constant"() {symbol = @w} : () -> !b13
  %d_y = bufferization.alloc_tensor() : !t13
  %y = "lb.call"(%x, %w, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!a, !b13, !t13) -> !t13
  func.return %y : !t13
}
// unchanged
