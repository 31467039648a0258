// pack.view makes a view that adds or removes unit dimensions of the pixels one of the packed tensor.

!x = tensor<1x16x2x2xf32, #lb.vdevice<0, "global">>
!mx = memref<1x16x2x2xf32, "global">
!w = tensor<16x16xf32, #lb.vdevice<0, "global">>
!mw = memref<16x16xf32, "global">
!l = tensor<1x16x1x4xf32, #lb.vdevice<0, "global">>
!ml = memref<1x16x1x4xf32, "global">
!s = tensor<1x16x4xf32, #lb.vdevice<0, "global">>
!ms = memref<1x16x4xf32, "global">
!lb = tensor<1x2x1x4x8xf32, #lb.vdevice<0, "global">>
!mlb = memref<1x2x1x4x8xf32, "global">
!sb = tensor<1x2x4x8xf32, #lb.vdevice<0, "global">>
!msb = memref<1x2x4x8xf32, "global">
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#data = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>
#weights = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4)>
#result = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>

// ---- an image of one line becomes a signal without a reorder
func.func @conv(%x: !ml, %w: !mw, %y: !ml) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !ml)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !ml, !mw) outs(%y : !ml) attrs = {lb.extents = [1 : i64, 16 : i64, 1 : i64, 4 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @negate(%x: !ms, %y: !ms) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : !ms) outs(%y : !ms) attrs = {lb.extents = [1 : i64, 16 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !l) -> !s {
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d_y = bufferization.alloc_tensor() : !l
  %y = "lb.call"(%x, %w, %d_y) {callee = @conv, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!l, !w, !l) -> !l
  %s = "lb.view"(%y) {offset = 0 : i64} : (!l) -> !s
  %d_z = bufferization.alloc_tensor() : !s
  %z = "lb.call"(%s, %d_z) {callee = @negate, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!s, !s) -> !s
  func.return %z : !s
}
// becomes
func.func @conv(%x: !ml, %w: !mw, %y: !ml) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !ml)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !ml, !mw) outs(%y : !ml) attrs = {lb.extents = [1 : i64, 16 : i64, 1 : i64, 4 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @negate(%x: !ms, %y: !ms) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : !ms) outs(%y : !ms) attrs = {lb.extents = [1 : i64, 16 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !l) -> !s {
  %0 = "lb.constant"() {symbol = @w_1} : () -> tensor<2x16x8xf32, #lb.vdevice<0, "global">>
  %1 = bufferization.alloc_tensor() : !lb
  %2 = "lb.call"(%x, %0, %1) {callee = @conv_p1, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!l, tensor<2x16x8xf32, #lb.vdevice<0, "global">>, !lb) -> !lb
  %3 = "lb.view"(%2) {offset = 0 : i64} : (!lb) -> !sb
  %4 = bufferization.alloc_tensor() : !sb
  %5 = "lb.call"(%3, %4) {callee = @negate_p2, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!sb, !sb) -> !sb
  %z = "lb.unpack"(%5) {axes = [1 : i64], tiles = [8 : i64]} : (!sb) -> !s
  func.return %z : !s
}
func.func @conv_p1(%0: !ml, %1: memref<2x16x8xf32, "global">, %2: !mlb) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !mlb)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d2, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "parallel"]} ins(%0, %1 : !ml, memref<2x16x8xf32, "global">) outs(%2 : !mlb) attrs = {lb.extents = [1 : i64, 2 : i64, 1 : i64, 4 : i64, 16 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @negate_p2(%0: !msb, %1: !msb) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%0 : !msb) outs(%1 : !msb) attrs = {lb.extents = [1 : i64, 2 : i64, 4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}

// ---- not a view of other lines
func.func @conv(%x: !ml, %w: !mw, %y: !ml) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !ml)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !ml, !mw) outs(%y : !ml) attrs = {lb.extents = [1 : i64, 16 : i64, 1 : i64, 4 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @negate(%x: !mx, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : !mx) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !l) -> !x {
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d_y = bufferization.alloc_tensor() : !l
  %y = "lb.call"(%x, %w, %d_y) {callee = @conv, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!l, !w, !l) -> !l
  %s = "lb.view"(%y) {offset = 0 : i64} : (!l) -> !x
  %d_z = bufferization.alloc_tensor() : !x
  %z = "lb.call"(%s, %d_z) {callee = @negate, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!x, !x) -> !x
  func.return %z : !x
}
// becomes
func.func @conv(%x: !ml, %w: !mw, %y: !ml) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !ml)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !ml, !mw) outs(%y : !ml) attrs = {lb.extents = [1 : i64, 16 : i64, 1 : i64, 4 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @negate(%x: !mx, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : !mx) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !l) -> !x {
  %0 = "lb.constant"() {symbol = @w_1} : () -> tensor<2x16x8xf32, #lb.vdevice<0, "global">>
  %1 = bufferization.alloc_tensor() : !lb
  %2 = "lb.call"(%x, %0, %1) {callee = @conv_p1, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!l, tensor<2x16x8xf32, #lb.vdevice<0, "global">>, !lb) -> !lb
  %y = "lb.unpack"(%2) {axes = [1 : i64], tiles = [8 : i64]} : (!lb) -> !l
  %s = "lb.view"(%y) {offset = 0 : i64} : (!l) -> !x
  %d_z = bufferization.alloc_tensor() : !x
  %z = "lb.call"(%s, %d_z) {callee = @negate, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!x, !x) -> !x
  func.return %z : !x
}
func.func @conv_p1(%0: !ml, %1: memref<2x16x8xf32, "global">, %2: !mlb) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !mlb)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d2, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "parallel"]} ins(%0, %1 : !ml, memref<2x16x8xf32, "global">) outs(%2 : !mlb) attrs = {lb.extents = [1 : i64, 2 : i64, 1 : i64, 4 : i64, 16 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
