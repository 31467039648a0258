// fold_scale.copy removes a last stage that, without its scale, only copies a temporary.

!x = tensor<4x8xf32, #lb.vdevice<0, "global">>
!mx = memref<4x8xf32, "global">
!w = tensor<8x2xf32, #lb.vdevice<0, "global">>
!mw = memref<8x2xf32, "global">
!y = tensor<4x2xf32, #lb.vdevice<0, "global">>
!my = memref<4x2xf32, "global">
!b = tensor<2xf32, #lb.vdevice<0, "global">>
!mb = memref<2xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#xk = affine_map<(d0, d1, d2) -> (d0, d2)>
#wk = affine_map<(d0, d1, d2) -> (d2, d1)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>

// ---- the sum writes the result itself
func.func @product(%x: !mx, %w: !mw, %y: !my) attributes {lb.prim} {
  %t = memref.alloc() : !my
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%t : !my)
  linalg.generic {indexing_maps = [#xk, #wk, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%t : !my) attrs = {lb.extents = [4 : i64, 2 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : !my) outs(%y : !my) attrs = {lb.extents = [4 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %half = arith.constant 0.5 : f32
    %r = arith.mulf %a, %half : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !y {
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d_y = bufferization.alloc_tensor() : !y
  %y = "lb.call"(%x, %w, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!x, !w, !y) -> !y
  func.return %y : !y
}
// becomes
func.func @product_1(%x: !mx, %w: !mw, %y: !my) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my)
  linalg.generic {indexing_maps = [#xk, #wk, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%y : !my) attrs = {lb.extents = [4 : i64, 2 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !y {
  %d_y = bufferization.alloc_tensor() : !y
  %0 = "lb.constant"() {symbol = @w_1} : () -> !w
  %y = "lb.call"(%x, %0, %d_y) {callee = @product_1, operandSegmentSizes = array<i32: 2, 1>, node = "product"} : (!x, !w, !y) -> !y
  func.return %y : !y
}

// ---- not a stage that still adds something
func.func @product(%x: !mx, %w: !mw, %u: !mb, %y: !my) attributes {lb.prim} {
  %t = memref.alloc() : !my
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%t : !my)
  linalg.generic {indexing_maps = [#xk, #wk, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%t : !my) attrs = {lb.extents = [4 : i64, 2 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%t, %u : !my, !mb) outs(%y : !my) attrs = {lb.extents = [4 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %half = arith.constant 0.5 : f32
    %p = arith.mulf %a, %half : f32
    %r = arith.addf %p, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !y {
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %u = "lb.constant"() {symbol = @u} : () -> !b
  %d_y = bufferization.alloc_tensor() : !y
  %y = "lb.call"(%x, %w, %u, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 3, 1>} : (!x, !w, !b, !y) -> !y
  func.return %y : !y
}
// becomes
func.func @product_1(%x: !mx, %w: !mw, %0: !mb, %y: !my) attributes {lb.prim} {
  %t = memref.alloc() : !my
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%t : !my)
  linalg.generic {indexing_maps = [#xk, #wk, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%t : !my) attrs = {lb.extents = [4 : i64, 2 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%t, %0 : !my, !mb) outs(%y : !my) attrs = {lb.extents = [4 : i64, 2 : i64]} {
  ^bb0(%a_1: f32, %1: f32, %c_1: f32):
    %r_1 = arith.addf %a_1, %1 fastmath<contract> : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @main(%x: !x) -> !y {
  %d_y = bufferization.alloc_tensor() : !y
  %0 = "lb.constant"() {symbol = @w_1} : () -> !w
  %1 = "lb.constant"() {symbol = @folded} : () -> !b
  %y = "lb.call"(%x, %0, %1, %d_y) {callee = @product_1, operandSegmentSizes = array<i32: 3, 1>, node = "product"} : (!x, !w, !b, !y) -> !y
  func.return %y : !y
}
