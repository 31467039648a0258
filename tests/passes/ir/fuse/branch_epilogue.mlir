// fuse.branch_epilogue merges elementwise calls into the call that computes their operand, where the reader of their
// result becomes the epilogue of a later call.

!x = tensor<64x128x2xf32, #lb.vdevice<0, "global">>
!mx = memref<64x128x2xf32, "global">
!t = tensor<64x128xf32, #lb.vdevice<0, "global">>
!m = memref<64x128xf32, "global">
#id = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>

// ---- the first of two summed results is negated in its own kernel, the addition joins the later
func.func @sums(%x: !mx, %y: !m) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @negate(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @add(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : !m, !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x, %w: !x) -> !t {
  %d_p = bufferization.alloc_tensor() : !t
  %p = "lb.call"(%x, %d_p) {callee = @sums, node = "p", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %d_n = bufferization.alloc_tensor() : !t
  %n = "lb.call"(%p, %d_n) {callee = @negate, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_q = bufferization.alloc_tensor() : !t
  %q = "lb.call"(%w, %d_q) {callee = @sums, node = "q", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%n, %q, %d_z) {callee = @add, node = "add", operandSegmentSizes = array<i32: 2, 1>} : (!t, !t, !t) -> !t
  func.return %z : !t
}
// becomes
func.func @sums_negate_2(%x: !mx, %y: !m) attributes {lb.prim} {
  %y_1 = memref.alloc() : !m
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y_1 : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y_1 : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y_1 : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32):
    %r_1 = arith.negf %a_1 : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @sums_add_4(%x: !mx, %x_1: !m, %y: !m) attributes {lb.prim} {
  %y_1 = memref.alloc() : !m
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y_1 : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y_1 : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x_1, %y_1 : !m, !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a_1: f32, %b_1: f32, %c: f32):
    %r_1 = arith.addf %a_1, %b_1 : f32
    linalg.yield %r_1 : f32
  }
  func.return
}
func.func @main(%x: !x, %w: !x) -> !t {
  %d_n = bufferization.alloc_tensor() : !t
  %n = "lb.call"(%x, %d_n) {callee = @sums_negate_2, operandSegmentSizes = array<i32: 1, 1>, node = "p+negate"} : (!x, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%w, %n, %d_z) {callee = @sums_add_4, operandSegmentSizes = array<i32: 2, 1>, node = "q+add"} : (!x, !t, !t) -> !t
  func.return %z : !t
}

// ---- not an operation that reads another tensor too
func.func @sums(%x: !mx, %y: !m) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @add(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : !m, !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x, %w: !x, %u: !t) -> !t {
  %d_p = bufferization.alloc_tensor() : !t
  %p = "lb.call"(%x, %d_p) {callee = @sums, node = "p", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %d_n = bufferization.alloc_tensor() : !t
  %n = "lb.call"(%p, %u, %d_n) {callee = @add, node = "n", operandSegmentSizes = array<i32: 2, 1>} : (!t, !t, !t) -> !t
  %d_q = bufferization.alloc_tensor() : !t
  %q = "lb.call"(%w, %d_q) {callee = @sums, node = "q", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%n, %q, %d_z) {callee = @add, node = "add", operandSegmentSizes = array<i32: 2, 1>} : (!t, !t, !t) -> !t
  func.return %z : !t
}
// becomes
func.func @sums(%x: !mx, %y: !m) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @sums_add_6(%x: !mx, %x_1: !m, %w: !m, %y: !m) attributes {lb.prim} {
  %y_1 = memref.alloc() : !m
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y_1 : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y_1 : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%y_1, %x_1, %w : !m, !m, !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%b_1: f32, %a_1: f32, %b_2: f32, %c: f32):
    %r_1 = arith.addf %a_1, %b_2 : f32
    %r_2 = arith.addf %r_1, %b_1 : f32
    linalg.yield %r_2 : f32
  }
  func.return
}
func.func @main(%x: !x, %w: !x, %u: !t) -> !t {
  %d_p = bufferization.alloc_tensor() : !t
  %p = "lb.call"(%x, %d_p) {callee = @sums, node = "p", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%w, %p, %u, %d_z) {callee = @sums_add_6, operandSegmentSizes = array<i32: 3, 1>, node = "q+n+add"} : (!x, !t, !t, !t) -> !t
  func.return %z : !t
}

// ---- not what is done to the later result, which the addition follows in the same kernel
func.func @sums(%x: !mx, %y: !m) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @negate(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @add(%x: !m, %w: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : !m, !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x, %w: !x) -> !t {
  %d_p = bufferization.alloc_tensor() : !t
  %p = "lb.call"(%x, %d_p) {callee = @sums, node = "p", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %d_q = bufferization.alloc_tensor() : !t
  %q = "lb.call"(%w, %d_q) {callee = @sums, node = "q", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %d_n = bufferization.alloc_tensor() : !t
  %n = "lb.call"(%q, %d_n) {callee = @negate, node = "negate", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%p, %n, %d_z) {callee = @add, node = "add", operandSegmentSizes = array<i32: 2, 1>} : (!t, !t, !t) -> !t
  func.return %z : !t
}
// becomes
func.func @sums(%x: !mx, %y: !m) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @sums_negate_add_3(%x: !mx, %x_1: !m, %y: !m) attributes {lb.prim} {
  %y_1 = memref.alloc() : !m
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y_1 : !m)
  linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !mx) outs(%y_1 : !m) attrs = {lb.extents = [64 : i64, 128 : i64, 2 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %b, %a : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x_1, %y_1 : !m, !m) outs(%y : !m) attrs = {lb.extents = [64 : i64, 128 : i64]} {
  ^bb0(%a_1: f32, %a_2: f32, %c: f32):
    %r_1 = arith.negf %a_2 : f32
    %r_2 = arith.addf %a_1, %r_1 : f32
    linalg.yield %r_2 : f32
  }
  func.return
}
func.func @main(%x: !x, %w: !x) -> !t {
  %d_p = bufferization.alloc_tensor() : !t
  %p = "lb.call"(%x, %d_p) {callee = @sums, node = "p", operandSegmentSizes = array<i32: 1, 1>} : (!x, !t) -> !t
  %d_z = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%w, %p, %d_z) {callee = @sums_negate_add_3, operandSegmentSizes = array<i32: 2, 1>, node = "q+negate+add"} : (!x, !t, !t) -> !t
  func.return %z : !t
}
