// pack.concat concatenates packed tensors.

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
!c = tensor<1x32x2x2xf32, #lb.vdevice<0, "global">>
!cv = tensor<1x24x2x2xf32, #lb.vdevice<0, "global">>
#data = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>
#weights = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4)>
#result = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>

// ---- full blocks of channels are concatenated as they are
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
func.func @main(%x: !x, %u: !x) -> !c {
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %w, %d_y) {callee = @conv, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!x, !w, !x) -> !x
  %d_z = bufferization.alloc_tensor() : !x
  %z = "lb.call"(%u, %w, %d_z) {callee = @conv, node = "b", operandSegmentSizes = array<i32: 2, 1>} : (!x, !w, !x) -> !x
  %c = "lb.concat"(%y, %z) {axis = 1 : i64, node = "cat"} : (!x, !x) -> !c
  func.return %c : !c
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
func.func @main(%x: !x, %u: !x) -> !c {
  %0 = "lb.pack"(%x) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %1 = "lb.constant"() {symbol = @w_1} : () -> !wb
  %2 = bufferization.alloc_tensor() : !xb
  %3 = "lb.call"(%0, %1, %2) {callee = @conv_p1, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!xb, !wb, !xb) -> !xb
  %4 = "lb.pack"(%u) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %5 = "lb.constant"() {symbol = @w_1} : () -> !wb
  %6 = bufferization.alloc_tensor() : !xb
  %7 = "lb.call"(%4, %5, %6) {callee = @conv_p1, node = "b", operandSegmentSizes = array<i32: 2, 1>} : (!xb, !wb, !xb) -> !xb
  %8 = "lb.concat"(%3, %7) {axis = 1 : i64, node = "cat"} : (!xb, !xb) -> tensor<1x4x2x2x8xf32, #lb.vdevice<0, "global">>
  %c = "lb.unpack"(%8) {axes = [1 : i64], tiles = [8 : i64]} : (tensor<1x4x2x2x8xf32, #lb.vdevice<0, "global">>) -> !c
  func.return %c : !c
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

// ---- not where the last block of a part has lanes of padding
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
func.func @main(%x: !x, %u: !x) -> !cv {
  %w = "lb.constant"() {symbol = @w} : () -> !wv
  %d_y = bufferization.alloc_tensor() : !v
  %y = "lb.call"(%x, %w, %d_y) {callee = @conv, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!x, !wv, !v) -> !v
  %d_z = bufferization.alloc_tensor() : !v
  %z = "lb.call"(%u, %w, %d_z) {callee = @conv, node = "b", operandSegmentSizes = array<i32: 2, 1>} : (!x, !wv, !v) -> !v
  %c = "lb.concat"(%y, %z) {axis = 1 : i64, node = "cat"} : (!v, !v) -> !cv
  func.return %c : !cv
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
func.func @main(%x: !x, %u: !x) -> !cv {
  %0 = "lb.pack"(%x) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %1 = "lb.constant"() {symbol = @w_1} : () -> !wb
  %2 = bufferization.alloc_tensor() : !xb
  %3 = "lb.call"(%0, %1, %2) {callee = @conv_p1, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!xb, !wb, !xb) -> !xb
  %y = "lb.unpack"(%3) {axes = [1 : i64], tiles = [8 : i64]} : (!xb) -> !v
  %4 = "lb.pack"(%u) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %5 = "lb.constant"() {symbol = @w_1} : () -> !wb
  %6 = bufferization.alloc_tensor() : !xb
  %7 = "lb.call"(%4, %5, %6) {callee = @conv_p1, node = "b", operandSegmentSizes = array<i32: 2, 1>} : (!xb, !wb, !xb) -> !xb
  %z = "lb.unpack"(%7) {axes = [1 : i64], tiles = [8 : i64]} : (!xb) -> !v
  %c = "lb.concat"(%y, %z) {axis = 1 : i64, node = "cat"} : (!v, !v) -> !cv
  func.return %c : !cv
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

// ---- not where one part is plain
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
func.func @main(%x: !x, %z: !x) -> !c {
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %w, %d_y) {callee = @conv, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!x, !w, !x) -> !x
  %c = "lb.concat"(%y, %z) {axis = 1 : i64, node = "cat"} : (!x, !x) -> !c
  func.return %c : !c
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
func.func @main(%x: !x, %z: !x) -> !c {
  %0 = "lb.pack"(%x) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %1 = "lb.constant"() {symbol = @w_1} : () -> !wb
  %2 = bufferization.alloc_tensor() : !xb
  %3 = "lb.call"(%0, %1, %2) {callee = @conv_p1, node = "a", operandSegmentSizes = array<i32: 2, 1>} : (!xb, !wb, !xb) -> !xb
  %y = "lb.unpack"(%3) {axes = [1 : i64], tiles = [8 : i64]} : (!xb) -> !x
  %c = "lb.concat"(%y, %z) {axis = 1 : i64, node = "cat"} : (!x, !x) -> !c
  func.return %c : !c
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
