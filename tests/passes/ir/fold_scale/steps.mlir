// fold_scale.steps makes consecutive arithmetic with constants one multiplication and one addition.

!x = tensor<4x8xf32, #lb.vdevice<0, "global">>
!mx = memref<4x8xf32, "global">
!c = tensor<8xf32, #lb.vdevice<0, "global">>
!mc = memref<8xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>

// ---- four steps are two
func.func @steps(%x: !mx, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mx) outs(%y : !mx) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %two = arith.constant 2.0 : f32
    %three = arith.constant 3.0 : f32
    %p = arith.mulf %a, %two : f32
    %q = arith.addf %p, %three : f32
    %s = arith.mulf %q, %two : f32
    %r = arith.addf %s, %two : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %d_y) {callee = @steps, node = "steps", operandSegmentSizes = array<i32: 1, 1>} : (!x, !x) -> !x
  func.return %y : !x
}
// becomes
func.func @steps_1(%x: !mx, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mx) outs(%y : !mx) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.constant 4.000000e+00 : f32
    %1 = arith.mulf %a, %0 fastmath<contract> : f32
    %2 = arith.constant 8.000000e+00 : f32
    %r = arith.addf %1, %2 fastmath<contract> : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %d_y) {callee = @steps_1, operandSegmentSizes = array<i32: 1, 1>, node = "steps"} : (!x, !x) -> !x
  func.return %y : !x
}

// ---- scales of each column become one constant
func.func @scale(%x: !mx, %w: !mc, %u: !mc, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #col, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w, %u : !mx, !mc, !mc) outs(%y : !mx) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.mulf %p, %c : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %w = "lb.constant"() {symbol = @w} : () -> !c
  %u = "lb.constant"() {symbol = @u} : () -> !c
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %w, %u, %d_y) {callee = @scale, node = "scale", operandSegmentSizes = array<i32: 3, 1>} : (!x, !c, !c, !x) -> !x
  func.return %y : !x
}
// becomes
func.func @scale_1(%x: !mx, %0: !mc, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %0 : !mx, !mc) outs(%y : !mx) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %1: f32, %d: f32):
    %r = arith.mulf %a, %1 fastmath<contract> : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %d_y = bufferization.alloc_tensor() : !x
  %0 = "lb.constant"() {symbol = @folded} : () -> !c
  %y = "lb.call"(%x, %0, %d_y) {callee = @scale_1, operandSegmentSizes = array<i32: 2, 1>, node = "scale"} : (!x, !c, !x) -> !x
  func.return %y : !x
}

// ---- not a division that no multiplication does exactly
func.func @steps(%x: !mx, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mx) outs(%y : !mx) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %three = arith.constant 3.0 : f32
    %r = arith.divf %a, %three : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %d_y) {callee = @steps, node = "steps", operandSegmentSizes = array<i32: 1, 1>} : (!x, !x) -> !x
  func.return %y : !x
}
// unchanged

// ---- not rounding by a large number that is added and subtracted
func.func @steps(%x: !mx, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mx) outs(%y : !mx) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %large = arith.constant 8388608.0 : f32
    %p = arith.addf %a, %large : f32
    %r = arith.subf %p, %large : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %d_y) {callee = @steps, node = "steps", operandSegmentSizes = array<i32: 1, 1>} : (!x, !x) -> !x
  func.return %y : !x
}
// unchanged

// ---- not scales between which the value would have overflowed
func.func @steps(%x: !mx, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !mx) outs(%y : !mx) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %large = arith.constant 1.0e+30 : f32
    %small = arith.constant 1.0e-30 : f32
    %p = arith.mulf %a, %large : f32
    %r = arith.mulf %p, %small : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %d_y) {callee = @steps, node = "steps", operandSegmentSizes = array<i32: 1, 1>} : (!x, !x) -> !x
  func.return %y : !x
}
// unchanged

// ---- not with what is no constant
func.func @scale(%x: !mx, %w: !mc, %u: !mc, %y: !mx) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #col, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w, %u : !mx, !mc, !mc) outs(%y : !mx) attrs = {lb.extents = [4 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.mulf %p, %c : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x, %w: !c, %u: !c) -> !x {
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%x, %w, %u, %d_y) {callee = @scale, node = "scale", operandSegmentSizes = array<i32: 3, 1>} : (!x, !c, !c, !x) -> !x
  func.return %y : !x
}
// unchanged
