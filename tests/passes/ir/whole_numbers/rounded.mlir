// whole_numbers.rounded removes the rounding of what is a whole number, or nearly one.

!t = tensor<8xf32, #lb.vdevice<0, "global">>
!m = memref<8xf32, "global">
!i = tensor<8xi8, #lb.vdevice<0, "global">>
!mi = memref<8xi8, "global">
#id = affine_map<(d0) -> (d0)>

// ---- an integer is whole
func.func @k(%x: !mi, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mi) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: i8, %b: f32):
    %n = arith.sitofp %a : i8 to f32
    %r = math.roundeven %n : f32
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

// ---- times almost 1 it rounds back to itself
func.func @k(%x: !mi, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mi) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: i8, %b: f32):
    %n = arith.sitofp %a : i8 to f32
    %s = arith.constant 1.0000001 : f32
    %q = arith.mulf %n, %s : f32
    %r = math.roundeven %q : f32
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

// ---- not a half of one
func.func @k(%x: !mi, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mi) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: i8, %b: f32):
    %n = arith.sitofp %a : i8 to f32
    %s = arith.constant 0.5 : f32
    %q = arith.mulf %n, %s : f32
    %r = math.roundeven %q : f32
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

// ---- not where the product may be nearer to another number
func.func @k(%x: !mi, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !mi) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: i8, %b: f32):
    %n = arith.sitofp %a : i8 to f32
    %s = arith.constant 1.01 : f32
    %q = arith.mulf %n, %s : f32
    %r = math.roundeven %q : f32
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
