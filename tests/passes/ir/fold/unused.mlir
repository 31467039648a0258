// fold.unused removes operations whose results nothing uses, and PrimFuncs and constants that nothing refers to.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!m = memref<4xf32, "global">
#one = affine_map<(d0) -> (d0)>

// ---- a call that nothing reads goes, and with it its kernel and what it alone reads
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @square(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_p = bufferization.alloc_tensor() : !t
  %p = "lb.call"(%w, %d_p) {callee = @double, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_q = bufferization.alloc_tensor() : !t
  %q = "lb.call"(%p, %d_q) {callee = @square, node = "c", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y : !t
}
// becomes
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y : !t
}

// ---- not what is returned
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> (!t, !t) {
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%w, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y, %w : !t, !t
}
// unchanged
