// pack.convolution lets a convolution compute blocks of channels. A vector of this target has 8 lanes of float32.

!x = tensor<1x16x2x2xf32, #lb.vdevice<0, "global">>
!mx = memref<1x16x2x2xf32, "global">
!w = tensor<16x16xf32, #lb.vdevice<0, "global">>
!mw = memref<16x16xf32, "global">
!v = tensor<1x12x2x2xf32, #lb.vdevice<0, "global">>
!mv = memref<1x12x2x2xf32, "global">
!wv = tensor<12x16xf32, #lb.vdevice<0, "global">>
!mwv = memref<12x16xf32, "global">
!xb = tensor<1x2x2x2x8xf32, #lb.vdevice<0, "global">>
!mxb = memref<1x2x2x2x8xf32, "global">
!wb = tensor<2x2x8x8xf32, #lb.vdevice<0, "global">>
!mwb = memref<2x2x8x8xf32, "global">
!few = tensor<1x4x2x8xf32, #lb.vdevice<0, "global">>
!mfew = memref<1x4x2x8xf32, "global">
!wide = tensor<1x16x2x8xf32, #lb.vdevice<0, "global">>
!mwide = memref<1x16x2x8xf32, "global">
!wf = tensor<4x16xf32, #lb.vdevice<0, "global">>
!mwf = memref<4x16xf32, "global">
#data = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>
#weights = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4)>
#result = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>

// ---- a convolution of 16 channels computes two blocks of 8
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

// ---- the last of two blocks has 4 of 12 channels and 4 lanes of padding, which lb.bounds leaves out
func.func @conv(%x: !mx, %w: !mwv, %y: !mv) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mv)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mwv) outs(%y : !mv) attrs = {lb.extents = [1 : i64, 12 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !v {
  %w = "lb.constant"() {symbol = @w} : () -> !wv
  %d_y = bufferization.alloc_tensor() : !v
  %y = "lb.call"(%x, %w, %d_y) {callee = @conv, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!x, !wv, !v) -> !v
  func.return %y : !v
}
// becomes
func.func @conv(%x: !mx, %w: !mwv, %y: !mv) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mv)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mx, !mwv) outs(%y : !mv) attrs = {lb.extents = [1 : i64, 12 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !v {
  %0 = "lb.pack"(%x) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %1 = "lb.constant"() {symbol = @w_1} : () -> !wb
  %2 = bufferization.alloc_tensor() : !xb
  %3 = "lb.call"(%0, %1, %2) {callee = @conv_p1, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!xb, !wb, !xb) -> !xb
  %y = "lb.unpack"(%3) {axes = [1 : i64], tiles = [8 : i64]} : (!xb) -> !v
  func.return %y : !v
}
func.func @conv_p1(%0: !mxb, %1: !mwb, %2: !mxb) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !mxb)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d6)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "parallel"]} ins(%0, %1 : !mxb, !mwb) outs(%2 : !mxb) attrs = {lb.extents = [1 : i64, 2 : i64, 2 : i64, 2 : i64, 2 : i64, 8 : i64, 8 : i64], lb.bounds = [[1 : i64, 6 : i64, 8 : i64, 12 : i64]]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}

// ---- not four channels, which fill half of a vector, where pixels of a line fill it
func.func @conv(%x: !mwide, %w: !mwf, %y: !mfew) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mfew)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mwide, !mwf) outs(%y : !mfew) attrs = {lb.extents = [1 : i64, 4 : i64, 2 : i64, 8 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !wide) -> !few {
  %w = "lb.constant"() {symbol = @w} : () -> !wf
  %d_y = bufferization.alloc_tensor() : !few
  %y = "lb.call"(%x, %w, %d_y) {callee = @conv, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!wide, !wf, !few) -> !few
  func.return %y : !few
}
// unchanged

// ---- not for a GPU, whose work-items read adjacent pixels together
// target gpu: opencl
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
// unchanged
