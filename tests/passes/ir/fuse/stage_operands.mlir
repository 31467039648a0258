// fuse.stage_operands merges operands of a stage that read the same elements.

!t = tensor<4x4xf32, #lb.vdevice<0, "global">>
!m = memref<4x4xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#swap = affine_map<(d0, d1) -> (d1, d0)>

// ---- equal reads of one argument are one operand
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

// ---- not reads of one argument in different orders
func.func @add(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #swap, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : !m, !m) outs(%y : !m) attrs = {lb.extents = [4 : i64, 4 : i64]} {
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
  linalg.generic {indexing_maps = [#id, #swap, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %x : !m, !m) outs(%y : !m) attrs = {lb.extents = [4 : i64, 4 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @add_1, operandSegmentSizes = array<i32: 1, 1>, node = "add"} : (!t, !t) -> !t
  func.return %y : !t
}
