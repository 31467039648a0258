// whole_numbers.extended converts to an integer of more bits at once, not in two steps.

!t = tensor<8xf32, #lb.vdevice<0, "global">>
!m = memref<8xf32, "global">
!w = tensor<8xi32, #lb.vdevice<0, "global">>
!mw = memref<8xi32, "global">
#id = affine_map<(d0) -> (d0)>

// ---- a float is converted to 32 bits, not to 8 and then to 32
func.func @k(%x: !m, %y: !m, %z: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y, %z : !m, !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: i32):
    %h = math.roundeven %a : f32
    %low = arith.constant -128.0 : f32
    %m = arith.maximumf %h, %low : f32
    %high = arith.constant 127.0 : f32
    %n = arith.minimumf %m, %high : f32
    %i = arith.fptosi %n : f32 to i8
    %w = arith.extsi %i : i8 to i32
    %r = arith.sitofp %i : i8 to f32
    linalg.yield %r, %w : f32, i32
  }
  func.return
}
func.func @main(%x: !t) -> (!t, !w) {
  %d = bufferization.alloc_tensor() : !t
  %e = bufferization.alloc_tensor() : !w
  %y, %z = "lb.call"(%x, %d, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 2>} : (!t, !t, !w) -> (!t, !w)
  func.return %y, %z : !t, !w
}
// becomes
func.func @k(%x: !m, %y: !m, %z: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y, %z : !m, !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: i32):
    %0 = arith.constant 0.000000e+00 : f32
    %h = math.roundeven %a : f32
    %low = arith.constant -1.280000e+02 : f32
    %m = arith.maximumf %h, %low : f32
    %high = arith.constant 1.270000e+02 : f32
    %n = arith.minimumf %m, %high : f32
    %1 = arith.cmpf ord, %n, %n : f32
    %2 = arith.select %1, %n, %0 : f32
    %r = arith.addf %2, %0 : f32
    %w = arith.fptosi %r : f32 to i32
    linalg.yield %r, %w : f32, i32
  }
  func.return
}
func.func @main(%x: !t) -> (!t, !w) {
  %d = bufferization.alloc_tensor() : !t
  %e = bufferization.alloc_tensor() : !w
  %y, %z = "lb.call"(%x, %d, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 2>} : (!t, !t, !w) -> (!t, !w)
  func.return %y, %z : !t, !w
}

// ---- a constant has 32 bits
func.func @k(%x: !m, %y: !m, %z: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y, %z : !m, !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: i32):
    %i = arith.constant 3 : i8
    %w = arith.extsi %i : i8 to i32
    %j = arith.fptosi %a : f32 to i8
    %r = arith.sitofp %j : i8 to f32
    linalg.yield %r, %w : f32, i32
  }
  func.return
}
func.func @main(%x: !t) -> (!t, !w) {
  %d = bufferization.alloc_tensor() : !t
  %e = bufferization.alloc_tensor() : !w
  %y, %z = "lb.call"(%x, %d, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 2>} : (!t, !t, !w) -> (!t, !w)
  func.return %y, %z : !t, !w
}
// becomes
func.func @k(%x: !m, %y: !m, %z: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y, %z : !m, !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: i32):
    %w = arith.constant 3 : i32
    %j = arith.fptosi %a : f32 to i8
    %r = arith.sitofp %j : i8 to f32
    linalg.yield %r, %w : f32, i32
  }
  func.return
}
func.func @main(%x: !t) -> (!t, !w) {
  %d = bufferization.alloc_tensor() : !t
  %e = bufferization.alloc_tensor() : !w
  %y, %z = "lb.call"(%x, %d, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 2>} : (!t, !t, !w) -> (!t, !w)
  func.return %y, %z : !t, !w
}

// ---- not a float that an integer of 8 bits may not hold
func.func @k(%x: !m, %y: !m, %z: !mw) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y, %z : !m, !mw) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: i32):
    %h = math.roundeven %a : f32
    %i = arith.fptosi %h : f32 to i8
    %w = arith.extsi %i : i8 to i32
    %r = arith.sitofp %i : i8 to f32
    linalg.yield %r, %w : f32, i32
  }
  func.return
}
func.func @main(%x: !t) -> (!t, !w) {
  %d = bufferization.alloc_tensor() : !t
  %e = bufferization.alloc_tensor() : !w
  %y, %z = "lb.call"(%x, %d, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 2>} : (!t, !t, !w) -> (!t, !w)
  func.return %y, %z : !t, !w
}
// unchanged
