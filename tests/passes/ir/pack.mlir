// pack gives convolutions and matrix products blocked layouts; a vector of this target has 8 lanes of float32.

!x = tensor<1x16x2x2xf32, #lb.vdevice<0, "global">>
!mx = memref<1x16x2x2xf32, "global">
!w = tensor<16x16xf32, #lb.vdevice<0, "global">>
!mw = memref<16x16xf32, "global">
!xb = tensor<1x2x2x2x8xf32, #lb.vdevice<0, "global">>
!mxb = memref<1x2x2x2x8xf32, "global">
!a = tensor<4x3xf32, #lb.vdevice<0, "global">>
!b = tensor<3x16xf32, #lb.vdevice<0, "global">>
!c = tensor<4x16xf32, #lb.vdevice<0, "global">>
!ma = memref<4x3xf32, "global">
!mb = memref<3x16xf32, "global">
!mc = memref<4x16xf32, "global">
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// ---- a 1x1 convolution on blocks of channels, and its neighbour follows: plain at both ends, blocked between
func.func @conv(%x: !mx, %w: !mw, %y: !mx) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mx)
  linalg.generic {indexing_maps = [affine_map<(n, o, h, w, i) -> (n, i, h, w)>, affine_map<(n, o, h, w, i) -> (o, i)>, affine_map<(n, o, h, w, i) -> (n, o, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  func.return
}
func.func @negate(%x: !mx, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : !mx) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %w, %d) {callee = @conv, operandSegmentSizes = array<i32: 2, 1>} : (!x, !w, !x) -> !x
  %e = bufferization.alloc_tensor() : !x
  %z = "lb.call"(%y, %e) {callee = @negate, operandSegmentSizes = array<i32: 1, 1>} : (!x, !x) -> !x
  func.return %z : !x
}
// becomes
func.func @conv(%x: !mx, %w: !mw, %y: !mx) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mx)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d1, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  func.return
}
func.func @negate(%x: !mx, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : !mx) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %0 = "lb.pack"(%x) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %1 = "lb.constant"() {symbol = @w_1} : () -> tensor<2x2x8x8xf32, #lb.vdevice<0, "global">>
  %2 = bufferization.alloc_tensor() : !xb
  %3 = "lb.call"(%0, %1, %2) {callee = @conv_p1, operandSegmentSizes = array<i32: 2, 1>} : (!xb, tensor<2x2x8x8xf32, #lb.vdevice<0, "global">>, !xb) -> !xb
  %4 = bufferization.alloc_tensor() : !xb
  %5 = "lb.call"(%3, %4) {callee = @negate_p2, operandSegmentSizes = array<i32: 1, 1>} : (!xb, !xb) -> !xb
  %z = "lb.unpack"(%5) {axes = [1 : i64], tiles = [8 : i64]} : (!xb) -> !x
  func.return %z : !x
}
func.func @conv_p1(%0: !mxb, %1: memref<2x2x8x8xf32, "global">, %2: !mxb) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !mxb)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d6)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "parallel"]} ins(%0, %1 : !mxb, memref<2x2x8x8xf32, "global">) outs(%2 : !mxb) attrs = {lb.extents = [1 : i64, 2 : i64, 2 : i64, 2 : i64, 2 : i64, 8 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  func.return
}
func.func @negate_p2(%0: !mxb, %1: !mxb) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%0 : !mxb) outs(%1 : !mxb) attrs = {lb.extents = [1 : i64, 2 : i64, 2 : i64, 2 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  }
  func.return
}

// ---- a convolution that adds its own input reads it along two kinds of channels: as two arguments both are blocked
func.func @conv(%x: !mx, %w: !mw, %y: !mx) attributes {lb.prim} {
  %t = memref.alloc() : !mx
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%t : !mx)
  linalg.generic {indexing_maps = [affine_map<(n, o, h, w, i) -> (n, i, h, w)>, affine_map<(n, o, h, w, i) -> (o, i)>, affine_map<(n, o, h, w, i) -> (n, o, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%t : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t, %x : !mx, !mx) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.addf %a, %b : f32
    linalg.yield %d : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %w, %d) {callee = @conv, operandSegmentSizes = array<i32: 2, 1>} : (!x, !w, !x) -> !x
  func.return %y : !x
}
// becomes
func.func @conv(%x: !mx, %w: !mw, %y: !mx) attributes {lb.prim} {
  %t = memref.alloc() : !mx
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%t : !mx)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d1, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mw) outs(%t : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t, %x : !mx, !mx) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32, %c_1: f32):
    %d_1 = arith.addf %a_1, %b_1 : f32
    linalg.yield %d_1 : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %0 = "lb.pack"(%x) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %1 = "lb.constant"() {symbol = @w_1} : () -> tensor<2x2x8x8xf32, #lb.vdevice<0, "global">>
  %2 = bufferization.alloc_tensor() : !xb
  %3 = "lb.call"(%0, %1, %0, %2) {callee = @conv_u1_p2, operandSegmentSizes = array<i32: 3, 1>} : (!xb, tensor<2x2x8x8xf32, #lb.vdevice<0, "global">>, !xb, !xb) -> !xb
  %y = "lb.unpack"(%3) {axes = [1 : i64], tiles = [8 : i64]} : (!xb) -> !x
  func.return %y : !x
}
func.func @conv_u1(%x: !mx, %w: !mw, %0: !mx, %y: !mx) attributes {lb.prim} {
  %t = memref.alloc() : !mx
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%t : !mx)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d1, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%0, %w : !mx, !mw) outs(%t : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t, %x : !mx, !mx) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32, %c_1: f32):
    %d_1 = arith.addf %a_1, %b_1 : f32
    linalg.yield %d_1 : f32
  }
  func.return
}
func.func @conv_u1_p2(%0: !mxb, %1: memref<2x2x8x8xf32, "global">, %2: !mxb, %3: !mxb) attributes {lb.prim} {
  %4 = memref.alloc() : !mxb
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%4 : !mxb)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d6)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "parallel"]} ins(%2, %1 : !mxb, memref<2x2x8x8xf32, "global">) outs(%4 : !mxb) attrs = {lb.extents = [1 : i64, 2 : i64, 2 : i64, 2 : i64, 2 : i64, 8 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%4, %0 : !mxb, !mxb) outs(%3 : !mxb) attrs = {lb.extents = [1 : i64, 2 : i64, 2 : i64, 2 : i64, 8 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32, %c_1: f32):
    %d_1 = arith.addf %a_1, %b_1 : f32
    linalg.yield %d_1 : f32
  }
  func.return
}

// ---- the weights of a matrix product in panels of one vector
func.func @product(%x: !ma, %w: !mb, %y: !mc) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mc)
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !ma, !mb) outs(%y : !mc) attrs = {lb.extents = [4 : i64, 16 : i64, 3 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  func.return
}
func.func @main(%x: !a) -> !c {
  %w = "lb.constant"() {symbol = @w} : () -> !b
  %d = bufferization.alloc_tensor() : !c
  %y = "lb.call"(%x, %w, %d) {callee = @product, operandSegmentSizes = array<i32: 2, 1>} : (!a, !b, !c) -> !c
  func.return %y : !c
}
// becomes
func.func @product(%x: !ma, %w: !mb, %y: !mc) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mc)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : !ma, !mb) outs(%y : !mc) attrs = {lb.extents = [4 : i64, 16 : i64, 3 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  func.return
}
func.func @main(%x: !a) -> !c {
  %0 = "lb.constant"() {symbol = @w_1} : () -> tensor<2x3x8xf32, #lb.vdevice<0, "global">>
  %1 = bufferization.alloc_tensor() : !c
  %y = "lb.call"(%x, %0, %1) {callee = @product_p1, operandSegmentSizes = array<i32: 2, 1>} : (!a, tensor<2x3x8xf32, #lb.vdevice<0, "global">>, !c) -> !c
  func.return %y : !c
}
func.func @product_p1(%0: !ma, %1: memref<2x3x8xf32, "global">, %2: !mc) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !mc)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2)>, affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, ((d1 * 8) + d3))>], iterator_types = ["parallel", "parallel", "reduction", "parallel"]} ins(%0, %1 : !ma, memref<2x3x8xf32, "global">) outs(%2 : !mc) attrs = {lb.extents = [4 : i64, 2 : i64, 3 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  func.return
}
