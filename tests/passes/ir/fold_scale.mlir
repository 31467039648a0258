// fold_scale makes multiplications and additions with constants one step each, and moves scales into constant weights.

!x = tensor<4x8xf32, #lb.vdevice<0, "global">>
!w = tensor<8x2xf32, #lb.vdevice<0, "global">>
!y = tensor<4x2xf32, #lb.vdevice<0, "global">>
!mx = memref<4x8xf32, "global">
!mw = memref<8x2xf32, "global">
!my = memref<4x2xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>

// ---- a run of steps becomes one multiplication and one addition
func.func @steps(%x: !mx, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mx) outs(%y : !mx) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %two = arith.constant 2.0 : f32
    %three = arith.constant 3.0 : f32
    %c = arith.mulf %a, %two : f32
    %d = arith.addf %c, %three : f32
    %e = arith.mulf %d, %two : f32
    %f = arith.addf %e, %two : f32
    linalg.yield %f : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %d = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %d) {callee = @steps, operandSegmentSizes = array<i32: 1, 1>} : (!x, !x) -> !x
  func.return %y : !x
}
// becomes
func.func @steps_1(%x: !mx, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mx) outs(%y : !mx) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.constant 4.000000e+00 : f32
    %1 = arith.mulf %a, %0 fastmath<contract> : f32
    %2 = arith.constant 8.000000e+00 : f32
    %f = arith.addf %1, %2 fastmath<contract> : f32
    linalg.yield %f : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %d = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %d) {callee = @steps_1, operandSegmentSizes = array<i32: 1, 1>} : (!x, !x) -> !x
  func.return %y : !x
}

// ---- a scale behind a matrix product goes into its weights
func.func @product(%x: !mx, %w: !mw, %y: !my) attributes {lb.prim} {
  %t = memref.alloc() : !my
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%t : !my)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%t : !my) attrs = {lb.extents = [4 : i64, 2 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : !my) outs(%y : !my) attrs = {lb.extents = [4 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %half = arith.constant 0.5 : f32
    %c = arith.mulf %a, %half : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !x) -> !y {
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d = bufferization.alloc_tensor() : !y
  %y = "lb.call"(%x, %w, %d) {callee = @product, operandSegmentSizes = array<i32: 2, 1>} : (!x, !w, !y) -> !y
  func.return %y : !y
}
// becomes
func.func @product_1(%x: !mx, %w: !mw, %y: !my) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !my)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%y : !my) attrs = {lb.extents = [4 : i64, 2 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  func.return
}
func.func @main(%x: !x) -> !y {
  %d = bufferization.alloc_tensor() : !y
  %0 = "lb.constant"() {symbol = @w_1} : () -> !w
  %y = "lb.call"(%x, %0, %d) {callee = @product_1, operandSegmentSizes = array<i32: 2, 1>} : (!x, !w, !y) -> !y
  func.return %y : !y
}
