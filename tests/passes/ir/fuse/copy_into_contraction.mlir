// fuse.copy_into_contraction lets a contraction read the source of a copy, such as a transpose, instead of the copy.

!w = tensor<8x16xf32, #lb.vdevice<0, "global">>
!mw = memref<8x16xf32, "global">
!v = tensor<16x8xf32, #lb.vdevice<0, "global">>
!mv = memref<16x8xf32, "global">
!x = tensor<4x16xf32, #lb.vdevice<0, "global">>
!mx = memref<4x16xf32, "global">
!y = tensor<4x8xf32, #lb.vdevice<0, "global">>
!my = memref<4x8xf32, "global">
!x9 = tensor<9x16xf32, #lb.vdevice<0, "global">>
!mx9 = memref<9x16xf32, "global">
!y9 = tensor<9x8xf32, #lb.vdevice<0, "global">>
!my9 = memref<9x8xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#swap = affine_map<(d0, d1) -> (d1, d0)>
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#v = affine_map<(d0, d1, d2) -> (d2, d1)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>

// ---- a product of four rows reads the columns of what was transposed
func.func @transpose(%x: !mw, %y: !mv) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mw) outs(%y : !mv) attrs = {lb.extents = [16 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @product(%x: !mx, %w: !mv, %y: !my) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my)
  linalg.generic {indexing_maps = [#x, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mv) outs(%y : !my) attrs = {lb.extents = [4 : i64, 8 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x, %w: !w) -> !y {
  %d_v = bufferization.alloc_tensor() : !v
  %v = "lb.call"(%w, %d_v) {callee = @transpose, node = "transpose", operandSegmentSizes = array<i32: 1, 1>} : (!w, !v) -> !v
  %d_y = bufferization.alloc_tensor() : !y
  %y = "lb.call"(%x, %v, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!x, !v, !y) -> !y
  func.return %y : !y
}
// becomes
func.func @transpose_product_1(%x: !mw, %x_1: !mx, %y: !my) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my)
  linalg.generic {indexing_maps = [#x, affine_map<(d0, d1, d2) -> (d1, d2)>, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x_1, %x : !mx, !mw) outs(%y : !my) attrs = {lb.extents = [4 : i64, 8 : i64, 16 : i64]} {
  ^bb0(%a: f32, %a_1: f32, %c: f32):
    %p = arith.mulf %a, %a_1 : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x, %w: !w) -> !y {
  %d_y = bufferization.alloc_tensor() : !y
  %y = "lb.call"(%w, %x, %d_y) {callee = @transpose_product_1, operandSegmentSizes = array<i32: 2, 1>, node = "transpose+product"} : (!w, !x, !y) -> !y
  func.return %y : !y
}

// ---- not a product of nine rows: each element is read so often that a copy in the best order pays
func.func @transpose(%x: !mw, %y: !mv) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mw) outs(%y : !mv) attrs = {lb.extents = [16 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @product(%x: !mx9, %w: !mv, %y: !my9) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my9)
  linalg.generic {indexing_maps = [#x, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !mx9, !mv) outs(%y : !my9) attrs = {lb.extents = [9 : i64, 8 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x9, %w: !w) -> !y9 {
  %d_v = bufferization.alloc_tensor() : !v
  %v = "lb.call"(%w, %d_v) {callee = @transpose, node = "transpose", operandSegmentSizes = array<i32: 1, 1>} : (!w, !v) -> !v
  %d_y = bufferization.alloc_tensor() : !y9
  %y = "lb.call"(%x, %v, %d_y) {callee = @product, node = "product", operandSegmentSizes = array<i32: 2, 1>} : (!x9, !v, !y9) -> !y9
  func.return %y : !y9
}
// unchanged
