// fold.repeated_operation merges equal operations on equal operands (common subexpressions).

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!m = memref<4xf32, "global">
#one = affine_map<(d0) -> (d0)>

// ---- what is computed twice is computed once, whatever the names of its nodes
func.func @double(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> (!t, !t) {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%x, %d_z) {callee = @double, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y, %z : !t, !t
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
func.func @main(%x: !t) -> (!t, !t) {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y, %y : !t, !t
}

// ---- what reads equal results is equal too
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
func.func @main(%x: !t) -> (!t, !t) {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%x, %d_z) {callee = @double, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_p = bufferization.alloc_tensor() : !t
  %p = "lb.call"(%y, %d_p) {callee = @square, node = "c", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_q = bufferization.alloc_tensor() : !t
  %q = "lb.call"(%z, %d_q) {callee = @square, node = "d", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %p, %q : !t, !t
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
func.func @square(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> (!t, !t) {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_p = bufferization.alloc_tensor() : !t
  %p = "lb.call"(%y, %d_p) {callee = @square, node = "c", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %p, %p : !t, !t
}

// ---- not one kernel on two operands, nor two kernels on one
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
func.func @main(%x: !t, %w: !t) -> (!t, !t, !t) {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @double, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%w, %d_z) {callee = @double, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_p = bufferization.alloc_tensor() : !t
  %p = "lb.call"(%x, %d_p) {callee = @square, node = "c", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y, %z, %p : !t, !t, !t
}
// unchanged
