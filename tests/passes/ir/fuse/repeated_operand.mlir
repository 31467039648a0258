// fuse.repeated_operand makes operands of a call that are one value one argument.

!t = tensor<4x4xf32, #lb.vdevice<0, "global">>
!m = memref<4x4xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>

// ---- a tensor that is added to itself is one argument
func.func @add(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : !m, !m) outs(%y : !m) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %x, %d_y) {callee = @add, node = "add", operandSegmentSizes = array<i32: 2, 1>} : (!t, !t, !t) -> !t
  func.return %y : !t
}
// becomes
func.func @add_1(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %c: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @add_1, operandSegmentSizes = array<i32: 1, 1>, node = "add"} : (!t, !t) -> !t
  func.return %y : !t
}

// ---- not two tensors
func.func @add(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : !m, !m) outs(%y : !m) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t, %w: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %w, %d_y) {callee = @add, node = "add", operandSegmentSizes = array<i32: 2, 1>} : (!t, !t, !t) -> !t
  func.return %y : !t
}
// unchanged
