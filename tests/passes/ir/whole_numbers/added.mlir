// whole_numbers.added removes a sum with 0, or with what was subtracted.

!t = tensor<8xf32, #lb.vdevice<0, "global">>
!m = memref<8xf32, "global">
!i = tensor<8xi8, #lb.vdevice<0, "global">>
!mi = memref<8xi8, "global">
#id = affine_map<(d0) -> (d0)>

// ---- an integer plus 0
func.func @k(%x: !mi, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mi) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: i8, %b: f32):
    %n = arith.sitofp %a : i8 to f32
    %z = arith.constant 0.0 : f32
    %r = arith.addf %n, %z : f32
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

// ---- 3 is subtracted and added again
func.func @k(%x: !mi, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mi) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: i8, %b: f32):
    %n = arith.sitofp %a : i8 to f32
    %z = arith.constant 3.0 : f32
    %q = arith.subf %n, %z : f32
    %r = arith.addf %q, %z : f32
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

// ---- not a rounded number plus 0, which makes 0 of -0
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %i = arith.fptosi %a : f32 to i8
    %n = arith.sitofp %i : i8 to f32
    %h = math.roundeven %a : f32
    %z = arith.constant 0.0 : f32
    %q = arith.addf %h, %z : f32
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

// ---- not a fraction that is subtracted and added, which rounds
func.func @k(%x: !mi, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mi) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: i8, %b: f32):
    %n = arith.sitofp %a : i8 to f32
    %z = arith.constant 0.1 : f32
    %q = arith.subf %n, %z : f32
    %r = arith.addf %q, %z : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !i) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!i, !t) -> !t
  func.return %y : !t
}
// unchanged
