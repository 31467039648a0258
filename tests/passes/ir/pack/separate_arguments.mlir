// pack.separate_arguments makes a tensor that two stages read two arguments, so that each can be packed for its stage.

!x = tensor<1x16x2x2xf32, #lb.vdevice<0, "global">>
!mx = memref<1x16x2x2xf32, "global">
!w = tensor<16x16xf32, #lb.vdevice<0, "global">>
!mw = memref<16x16xf32, "global">
!xb = tensor<1x2x2x2x8xf32, #lb.vdevice<0, "global">>
!mxb = memref<1x2x2x2x8xf32, "global">
!wb = tensor<2x2x8x8xf32, #lb.vdevice<0, "global">>
!mwb = memref<2x2x8x8xf32, "global">
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#data = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>
#weights = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4)>
#result = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>

// ---- a convolution that adds its own input reads it along two kinds of channels
func.func @conv(%x: !mx, %w: !mw, %y: !mx) attributes {lb.prim} {
  %t = memref.alloc() : !mx
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%t : !mx)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%t : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t, %x : !mx, !mx) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
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
  %t = memref.alloc() : !mx
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%t : !mx)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%t : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t, %x : !mx, !mx) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32, %c_1: f32):
    %r_1 = arith.addf %a_1, %b_1 : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %0 = "lb.pack"(%x) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %1 = "lb.constant"() {symbol = @w_1} : () -> !wb
  %2 = bufferization.alloc_tensor() : !xb
  %3 = "lb.call"(%0, %1, %0, %2) {callee = @conv_u1_p2, node = "conv", operandSegmentSizes = array<i32: 3, 1>} : (!xb, !wb, !xb, !xb) -> !xb
  %y = "lb.unpack"(%3) {axes = [1 : i64], tiles = [8 : i64]} : (!xb) -> !x
  func.return %y : !x
}
func.func @conv_u1(%x: !mx, %w: !mw, %0: !mx, %y: !mx) attributes {lb.prim} {
  %t = memref.alloc() : !mx
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%t : !mx)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%0, %w : !mx, !mw) outs(%t : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t, %x : !mx, !mx) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32, %c_1: f32):
    %r_1 = arith.addf %a_1, %b_1 : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @conv_u1_p2(%0: !mxb, %1: !mwb, %2: !mxb, %3: !mxb) attributes {lb.prim} {
  %4 = memref.alloc() : !mxb
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%4 : !mxb)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d6)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "parallel"]} ins(%2, %1 : !mxb, !mwb) outs(%4 : !mxb) attrs = {lb.extents = [1 : i64, 2 : i64, 2 : i64, 2 : i64, 2 : i64, 8 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%4, %0 : !mxb, !mxb) outs(%3 : !mxb) attrs = {lb.extents = [1 : i64, 2 : i64, 2 : i64, 2 : i64, 8 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32, %c_1: f32):
    %r_1 = arith.addf %a_1, %b_1 : f32
    linalg.yield %r_1 : f32
  }
  func.return
}

// ---- not a convolution that adds another tensor
func.func @conv(%x: !mx, %w: !mw, %u: !mx, %y: !mx) attributes {lb.prim} {
  %t = memref.alloc() : !mx
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%t : !mx)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%t : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t, %u : !mx, !mx) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x, %u: !x) -> !x {
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %w, %u, %d_y) {callee = @conv, node = "conv", operandSegmentSizes = array<i32: 3, 1>} : (!x, !w, !x, !x) -> !x
  func.return %y : !x
}
// becomes
func.func @conv(%x: !mx, %w: !mw, %u: !mx, %y: !mx) attributes {lb.prim} {
  %t = memref.alloc() : !mx
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%t : !mx)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%t : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t, %u : !mx, !mx) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32, %c_1: f32):
    %r_1 = arith.addf %a_1, %b_1 : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @main(%x: !x, %u: !x) -> !x {
  %0 = "lb.pack"(%x) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %1 = "lb.constant"() {symbol = @w_1} : () -> !wb
  %2 = "lb.pack"(%u) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %3 = bufferization.alloc_tensor() : !xb
  %4 = "lb.call"(%0, %1, %2, %3) {callee = @conv_p1, node = "conv", operandSegmentSizes = array<i32: 3, 1>} : (!xb, !wb, !xb, !xb) -> !xb
  %y = "lb.unpack"(%4) {axes = [1 : i64], tiles = [8 : i64]} : (!xb) -> !x
  func.return %y : !x
}
func.func @conv_p1(%0: !mxb, %1: !mwb, %2: !mxb, %3: !mxb) attributes {lb.prim} {
  %4 = memref.alloc() : !mxb
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%4 : !mxb)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d6)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "parallel"]} ins(%0, %1 : !mxb, !mwb) outs(%4 : !mxb) attrs = {lb.extents = [1 : i64, 2 : i64, 2 : i64, 2 : i64, 2 : i64, 8 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%4, %2 : !mxb, !mxb) outs(%3 : !mxb) attrs = {lb.extents = [1 : i64, 2 : i64, 2 : i64, 2 : i64, 8 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32, %c_1: f32):
    %r_1 = arith.addf %a_1, %b_1 : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
