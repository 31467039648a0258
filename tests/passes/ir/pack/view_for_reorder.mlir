// pack.view_for_reorder makes a reorder that moves no element a view.

!x = tensor<1x16x2x2xf32, #lb.vdevice<0, "global">>
!mx = memref<1x16x2x2xf32, "global">
!w = tensor<16x16xf32, #lb.vdevice<0, "global">>
!mw = memref<16x16xf32, "global">
!xb = tensor<1x2x2x2x8xf32, #lb.vdevice<0, "global">>
!mxb = memref<1x2x2x2x8xf32, "global">
!wb = tensor<2x2x8x8xf32, #lb.vdevice<0, "global">>
!mwb = memref<2x2x8x8xf32, "global">
!p = tensor<1x16x1x1xf32, #lb.vdevice<0, "global">>
!mp = memref<1x16x1x1xf32, "global">
!pb = tensor<1x2x1x1x8xf32, #lb.vdevice<0, "global">>
!mpb = memref<1x2x1x1x8xf32, "global">
#data = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>
#weights = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4)>
#result = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>

// ---- channels of one pixel lie in the order of their blocks
func.func @conv(%x: !mp, %w: !mw, %y: !mp) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mp)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mp, !mw) outs(%y : !mp) attrs = {lb.extents = [1 : i64, 16 : i64, 1 : i64, 1 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !p) -> !p {
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d_y = bufferization.alloc_tensor() : !p
  %y = "lb.call"(%x, %w, %d_y) {callee = @conv, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!p, !w, !p) -> !p
  func.return %y : !p
}
// becomes
func.func @conv(%x: !mp, %w: !mw, %y: !mp) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mp)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mp, !mw) outs(%y : !mp) attrs = {lb.extents = [1 : i64, 16 : i64, 1 : i64, 1 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !p) -> !p {
  %0 = "lb.constant"() {symbol = @w_1} : () -> tensor<2x16x8xf32, #lb.vdevice<0, "global">>
  %1 = bufferization.alloc_tensor() : !pb
  %2 = "lb.call"(%x, %0, %1) {callee = @conv_p1, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!p, tensor<2x16x8xf32, #lb.vdevice<0, "global">>, !pb) -> !pb
  %y = "lb.view"(%2) {offset = 0 : i64} : (!pb) -> !p
  func.return %y : !p
}
func.func @conv_p1(%0: !mp, %1: memref<2x16x8xf32, "global">, %2: !mpb) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !mpb)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d2, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "parallel"]} ins(%0, %1 : !mp, memref<2x16x8xf32, "global">) outs(%2 : !mpb) attrs = {lb.extents = [1 : i64, 2 : i64, 1 : i64, 1 : i64, 16 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}

// ---- not of several pixels
func.func @conv(%x: !mx, %w: !mw, %y: !mx) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mx)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %w, %d_y) {callee = @conv, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!x, !w, !x) -> !x
  func.return %y : !x
}
// becomes
func.func @conv(%x: !mx, %w: !mw, %y: !mx) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mx)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %0 = "lb.pack"(%x) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %1 = "lb.constant"() {symbol = @w_1} : () -> !wb
  %2 = bufferization.alloc_tensor() : !xb
  %3 = "lb.call"(%0, %1, %2) {callee = @conv_p1, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!xb, !wb, !xb) -> !xb
  %y = "lb.unpack"(%3) {axes = [1 : i64], tiles = [8 : i64]} : (!xb) -> !x
  func.return %y : !x
}
func.func @conv_p1(%0: !mxb, %1: !mwb, %2: !mxb) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !mxb)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d6)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "parallel"]} ins(%0, %1 : !mxb, !mwb) outs(%2 : !mxb) attrs = {lb.extents = [1 : i64, 2 : i64, 2 : i64, 2 : i64, 2 : i64, 8 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
