// whole_numbers.product removes a multiplication of a whole number by 1.

!t = tensor<8xf32, #lb.vdevice<0, "global">>
!m = memref<8xf32, "global">
!i = tensor<8xi8, #lb.vdevice<0, "global">>
!mi = memref<8xi8, "global">
#id = affine_map<(d0) -> (d0)>

// ---- an integer times 1
func.func @k(%x: !mi, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mi) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: i8, %b: f32):
    %n = arith.sitofp %a : i8 to f32
    %s = arith.constant 1.0 : f32
    %r = arith.mulf %n, %s : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !i) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!i, !t) -> !t
  func.return %y : !t
}
// becomes
func.func @k(%x: !mi, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mi) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: i8, %b: f32):
    %n = arith.sitofp %a : i8 to f32
    linalg.yield %n : f32
  }
  func.return
}
func.func @main(%x: !i) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!i, !t) -> !t
  func.return %y : !t
}

// ---- not a float times 1, which may be denormal and flushed to 0
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %i = arith.fptosi %a : f32 to i8
    %n = arith.sitofp %i : i8 to f32
    %s = arith.constant 1.0 : f32
    %q = arith.mulf %a, %s : f32
    %r = arith.addf %q, %n : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y : !t
}
// unchanged
