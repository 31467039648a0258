// whole_numbers.to_float computes with the float that an integer was converted from.

!t = tensor<8xf32, #lb.vdevice<0, "global">>
!m = memref<8xf32, "global">
#id = affine_map<(d0) -> (d0)>

// ---- a float that is quantized and dequantized stays a float: only NaN, which an integer has as 0, needs a test, and -0 a sum
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %h = math.roundeven %a : f32
    %low = arith.constant -128.0 : f32
    %m = arith.maximumf %h, %low : f32
    %high = arith.constant 127.0 : f32
    %n = arith.minimumf %m, %high : f32
    %i = arith.fptosi %n : f32 to i8
    %r = arith.sitofp %i : i8 to f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y : !t
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.constant 0.000000e+00 : f32
    %h = math.roundeven %a : f32
    %low = arith.constant -1.280000e+02 : f32
    %m = arith.maximumf %h, %low : f32
    %high = arith.constant 1.270000e+02 : f32
    %n = arith.minimumf %m, %high : f32
    %1 = arith.cmpf ord, %n, %n : f32
    %2 = arith.select %1, %n, %0 : f32
    %r = arith.addf %2, %0 : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y : !t
}

// ---- a difference of integers that cannot wrap is one of floats
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %h = math.roundeven %a : f32
    %low = arith.constant -128.0 : f32
    %m = arith.maximumf %h, %low : f32
    %high = arith.constant 127.0 : f32
    %n = arith.minimumf %m, %high : f32
    %i = arith.fptosi %n : f32 to i8
    %j = arith.extsi %i : i8 to i32
    %z = arith.constant 3 : i32
    %d = arith.subi %j, %z : i32
    %r = arith.sitofp %d : i32 to f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y : !t
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.constant 3.000000e+00 : f32
    %1 = arith.constant 0.000000e+00 : f32
    %h = math.roundeven %a : f32
    %low = arith.constant -1.280000e+02 : f32
    %m = arith.maximumf %h, %low : f32
    %high = arith.constant 1.270000e+02 : f32
    %n = arith.minimumf %m, %high : f32
    %2 = arith.cmpf ord, %n, %n : f32
    %3 = arith.select %2, %n, %1 : f32
    %4 = arith.addf %3, %1 : f32
    %r = arith.subf %4, %0 : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d_y = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d_y) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y : !t
}

// ---- not a difference that may wrap
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %h = math.roundeven %a : f32
    %low = arith.constant -128.0 : f32
    %m = arith.maximumf %h, %low : f32
    %high = arith.constant 127.0 : f32
    %n = arith.minimumf %m, %high : f32
    %i = arith.fptosi %n : f32 to i8
    %z = arith.constant 3 : i8
    %d = arith.subi %i, %z : i8
    %r = arith.sitofp %d : i8 to f32
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

// ---- not a float that the conversion truncates
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %low = arith.constant -128.0 : f32
    %m = arith.maximumf %a, %low : f32
    %high = arith.constant 127.0 : f32
    %n = arith.minimumf %m, %high : f32
    %i = arith.fptosi %n : f32 to i8
    %r = arith.sitofp %i : i8 to f32
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

// ---- not a float that may be beyond the range of the integer
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [8 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %h = math.roundeven %a : f32
    %i = arith.fptosi %h : f32 to i8
    %r = arith.sitofp %i : i8 to f32
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
