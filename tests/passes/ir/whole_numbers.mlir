// whole_numbers lets numbers stay floats that are converted to integers and back, as quantized networks do.

// ---- a float that is quantized and dequantized stays a float; only NaN, which an integer has as 0, needs a test
func.func @q(%0: memref<32xf32, "global">, %1: memref<32xf32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<32xf32, "global">) outs(%1 : memref<32xf32, "global">) attrs =  {lb.extents = [32 : i64]} {
  ^bb0(%x: f32, %y: f32):
    %scale0 = arith.constant 0.5 : f32
    %q0 = arith.divf %x, %scale0 fastmath<contract> : f32
    %r0 = math.roundeven %q0 : f32
    %z0 = arith.constant 3 : i8
    %zf0 = arith.sitofp %z0 : i8 to f32
    %s0 = arith.addf %r0, %zf0 fastmath<contract> : f32
    %low0 = arith.constant -128.0 : f32
    %m0 = arith.maximumf %s0, %low0 fastmath<nsz,contract> : f32
    %high0 = arith.constant 127.0 : f32
    %n0 = arith.minimumf %m0, %high0 fastmath<nsz,contract> : f32
    %i0 = arith.fptosi %n0 : f32 to i8
    %w0 = arith.extsi %i0 : i8 to i32
    %zw0 = arith.extsi %z0 : i8 to i32
    %c0 = arith.subi %w0, %zw0 : i32
    %f0 = arith.sitofp %c0 : i32 to f32
    %back0 = arith.constant 0.5 : f32
    %d0 = arith.mulf %f0, %back0 fastmath<contract> : f32
    linalg.yield %d0 : f32
  }
  func.return
}
func.func @main(%a: tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xf32, #lb.vdevice<0, "global">> attributes {lb.input_names = ["a"], lb.output_names = ["b"]} {
  %b = bufferization.alloc_tensor() : tensor<32xf32, #lb.vdevice<0, "global">>
  %c = "lb.call"(%a, %b) {callee = @q, operandSegmentSizes = array<i32: 1, 1>} : (tensor<32xf32, #lb.vdevice<0, "global">>, tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xf32, #lb.vdevice<0, "global">>
  func.return %c : tensor<32xf32, #lb.vdevice<0, "global">>
}
// becomes
func.func @q(%0: memref<32xf32, "global">, %1: memref<32xf32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<32xf32, "global">) outs(%1 : memref<32xf32, "global">) attrs =  {lb.extents = [32 : i64]} {
  ^bb0(%2: f32, %3: f32):
    %4 = arith.constant 0.000000e+00 : f32
    %5 = arith.constant 3.000000e+00 : f32
    %6 = arith.constant 5.000000e-01 : f32
    %7 = arith.divf %2, %6 fastmath<contract> : f32
    %8 = math.roundeven %7 : f32
    %9 = arith.addf %8, %5 fastmath<contract> : f32
    %10 = arith.constant -1.280000e+02 : f32
    %11 = arith.maximumf %9, %10 fastmath<nsz,contract> : f32
    %12 = arith.constant 1.270000e+02 : f32
    %13 = arith.minimumf %11, %12 fastmath<nsz,contract> : f32
    %14 = arith.cmpf ord, %13, %13 : f32
    %15 = arith.select %14, %13, %4 : f32
    %16 = arith.subf %15, %5 : f32
    %17 = arith.constant 5.000000e-01 : f32
    %18 = arith.mulf %16, %17 fastmath<contract> : f32
    linalg.yield %18 : f32
  }
  func.return
}
func.func @main(%0: tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xf32, #lb.vdevice<0, "global">> attributes {lb.input_names = ["a"], lb.output_names = ["b"]} {
  %1 = bufferization.alloc_tensor() : tensor<32xf32, #lb.vdevice<0, "global">>
  %2 = "lb.call"(%0, %1) {callee = @q, operandSegmentSizes = array<i32: 1, 1>} : (tensor<32xf32, #lb.vdevice<0, "global">>, tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xf32, #lb.vdevice<0, "global">>
  func.return %2 : tensor<32xf32, #lb.vdevice<0, "global">>
}

// ---- another quantization by nearly the same scale changes nothing, and is dropped
func.func @q(%0: memref<32xf32, "global">, %1: memref<32xf32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<32xf32, "global">) outs(%1 : memref<32xf32, "global">) attrs =  {lb.extents = [32 : i64]} {
  ^bb0(%x: f32, %y: f32):
    %scale0 = arith.constant 0.5 : f32
    %q0 = arith.divf %x, %scale0 fastmath<contract> : f32
    %r0 = math.roundeven %q0 : f32
    %z0 = arith.constant 3 : i8
    %zf0 = arith.sitofp %z0 : i8 to f32
    %s0 = arith.addf %r0, %zf0 fastmath<contract> : f32
    %low0 = arith.constant -128.0 : f32
    %m0 = arith.maximumf %s0, %low0 fastmath<nsz,contract> : f32
    %high0 = arith.constant 127.0 : f32
    %n0 = arith.minimumf %m0, %high0 fastmath<nsz,contract> : f32
    %i0 = arith.fptosi %n0 : f32 to i8
    %w0 = arith.extsi %i0 : i8 to i32
    %zw0 = arith.extsi %z0 : i8 to i32
    %c0 = arith.subi %w0, %zw0 : i32
    %f0 = arith.sitofp %c0 : i32 to f32
    %scale1 = arith.constant 1.0000001 : f32
    %q1 = arith.divf %f0, %scale1 fastmath<contract> : f32
    %r1 = math.roundeven %q1 : f32
    %z1 = arith.constant 3 : i8
    %zf1 = arith.sitofp %z1 : i8 to f32
    %s1 = arith.addf %r1, %zf1 fastmath<contract> : f32
    %low1 = arith.constant -128.0 : f32
    %m1 = arith.maximumf %s1, %low1 fastmath<nsz,contract> : f32
    %high1 = arith.constant 127.0 : f32
    %n1 = arith.minimumf %m1, %high1 fastmath<nsz,contract> : f32
    %i1 = arith.fptosi %n1 : f32 to i8
    %w1 = arith.extsi %i1 : i8 to i32
    %zw1 = arith.extsi %z1 : i8 to i32
    %c1 = arith.subi %w1, %zw1 : i32
    %f1 = arith.sitofp %c1 : i32 to f32
    %back1 = arith.constant 0.5 : f32
    %d1 = arith.mulf %f1, %back1 fastmath<contract> : f32
    linalg.yield %d1 : f32
  }
  func.return
}
func.func @main(%a: tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xf32, #lb.vdevice<0, "global">> attributes {lb.input_names = ["a"], lb.output_names = ["b"]} {
  %b = bufferization.alloc_tensor() : tensor<32xf32, #lb.vdevice<0, "global">>
  %c = "lb.call"(%a, %b) {callee = @q, operandSegmentSizes = array<i32: 1, 1>} : (tensor<32xf32, #lb.vdevice<0, "global">>, tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xf32, #lb.vdevice<0, "global">>
  func.return %c : tensor<32xf32, #lb.vdevice<0, "global">>
}
// becomes
func.func @q(%0: memref<32xf32, "global">, %1: memref<32xf32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<32xf32, "global">) outs(%1 : memref<32xf32, "global">) attrs =  {lb.extents = [32 : i64]} {
  ^bb0(%2: f32, %3: f32):
    %4 = arith.constant 0.000000e+00 : f32
    %5 = arith.constant 3.000000e+00 : f32
    %6 = arith.constant 5.000000e-01 : f32
    %7 = arith.divf %2, %6 fastmath<contract> : f32
    %8 = math.roundeven %7 : f32
    %9 = arith.addf %8, %5 fastmath<contract> : f32
    %10 = arith.constant -1.280000e+02 : f32
    %11 = arith.maximumf %9, %10 fastmath<nsz,contract> : f32
    %12 = arith.constant 1.270000e+02 : f32
    %13 = arith.minimumf %11, %12 fastmath<nsz,contract> : f32
    %14 = arith.cmpf ord, %13, %13 : f32
    %15 = arith.select %14, %13, %4 : f32
    %16 = arith.subf %15, %5 : f32
    %17 = arith.constant 5.000000e-01 : f32
    %18 = arith.mulf %16, %17 fastmath<contract> : f32
    linalg.yield %18 : f32
  }
  func.return
}
func.func @main(%0: tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xf32, #lb.vdevice<0, "global">> attributes {lb.input_names = ["a"], lb.output_names = ["b"]} {
  %1 = bufferization.alloc_tensor() : tensor<32xf32, #lb.vdevice<0, "global">>
  %2 = "lb.call"(%0, %1) {callee = @q, operandSegmentSizes = array<i32: 1, 1>} : (tensor<32xf32, #lb.vdevice<0, "global">>, tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xf32, #lb.vdevice<0, "global">>
  func.return %2 : tensor<32xf32, #lb.vdevice<0, "global">>
}

// ---- what is stored as an integer stays one
func.func @q(%0: memref<32xf32, "global">, %1: memref<32xi8, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<32xf32, "global">) outs(%1 : memref<32xi8, "global">) attrs =  {lb.extents = [32 : i64]} {
  ^bb0(%x: f32, %y: i8):
    %scale0 = arith.constant 0.5 : f32
    %q0 = arith.divf %x, %scale0 fastmath<contract> : f32
    %r0 = math.roundeven %q0 : f32
    %z0 = arith.constant 3 : i8
    %zf0 = arith.sitofp %z0 : i8 to f32
    %s0 = arith.addf %r0, %zf0 fastmath<contract> : f32
    %low0 = arith.constant -128.0 : f32
    %m0 = arith.maximumf %s0, %low0 fastmath<nsz,contract> : f32
    %high0 = arith.constant 127.0 : f32
    %n0 = arith.minimumf %m0, %high0 fastmath<nsz,contract> : f32
    %i0 = arith.fptosi %n0 : f32 to i8
    linalg.yield %i0 : i8
  }
  func.return
}
func.func @main(%a: tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xi8, #lb.vdevice<0, "global">> attributes {lb.input_names = ["a"], lb.output_names = ["b"]} {
  %b = bufferization.alloc_tensor() : tensor<32xi8, #lb.vdevice<0, "global">>
  %c = "lb.call"(%a, %b) {callee = @q, operandSegmentSizes = array<i32: 1, 1>} : (tensor<32xf32, #lb.vdevice<0, "global">>, tensor<32xi8, #lb.vdevice<0, "global">>) -> tensor<32xi8, #lb.vdevice<0, "global">>
  func.return %c : tensor<32xi8, #lb.vdevice<0, "global">>
}
// becomes
func.func @q(%0: memref<32xf32, "global">, %1: memref<32xi8, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<32xf32, "global">) outs(%1 : memref<32xi8, "global">) attrs =  {lb.extents = [32 : i64]} {
  ^bb0(%2: f32, %3: i8):
    %4 = arith.constant 3.000000e+00 : f32
    %5 = arith.constant 5.000000e-01 : f32
    %6 = arith.divf %2, %5 fastmath<contract> : f32
    %7 = math.roundeven %6 : f32
    %8 = arith.addf %7, %4 fastmath<contract> : f32
    %9 = arith.constant -1.280000e+02 : f32
    %10 = arith.maximumf %8, %9 fastmath<nsz,contract> : f32
    %11 = arith.constant 1.270000e+02 : f32
    %12 = arith.minimumf %10, %11 fastmath<nsz,contract> : f32
    %13 = arith.fptosi %12 : f32 to i8
    linalg.yield %13 : i8
  }
  func.return
}
func.func @main(%0: tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xi8, #lb.vdevice<0, "global">> attributes {lb.input_names = ["a"], lb.output_names = ["b"]} {
  %1 = bufferization.alloc_tensor() : tensor<32xi8, #lb.vdevice<0, "global">>
  %2 = "lb.call"(%0, %1) {callee = @q, operandSegmentSizes = array<i32: 1, 1>} : (tensor<32xf32, #lb.vdevice<0, "global">>, tensor<32xi8, #lb.vdevice<0, "global">>) -> tensor<32xi8, #lb.vdevice<0, "global">>
  func.return %2 : tensor<32xi8, #lb.vdevice<0, "global">>
}

// ---- a float that is no whole number is truncated by the conversion, which stays
func.func @t(%0: memref<32xf32, "global">, %1: memref<32xf32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<32xf32, "global">) outs(%1 : memref<32xf32, "global">) attrs =  {lb.extents = [32 : i64]} {
  ^bb0(%x: f32, %y: f32):
    %low = arith.constant -128.0 : f32
    %m = arith.maximumf %x, %low fastmath<nsz,contract> : f32
    %high = arith.constant 127.0 : f32
    %n = arith.minimumf %m, %high fastmath<nsz,contract> : f32
    %i = arith.fptosi %n : f32 to i8
    %f = arith.sitofp %i : i8 to f32
    linalg.yield %f : f32
  }
  func.return
}
func.func @main(%a: tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xf32, #lb.vdevice<0, "global">> attributes {lb.input_names = ["a"], lb.output_names = ["b"]} {
  %b = bufferization.alloc_tensor() : tensor<32xf32, #lb.vdevice<0, "global">>
  %c = "lb.call"(%a, %b) {callee = @t, operandSegmentSizes = array<i32: 1, 1>} : (tensor<32xf32, #lb.vdevice<0, "global">>, tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xf32, #lb.vdevice<0, "global">>
  func.return %c : tensor<32xf32, #lb.vdevice<0, "global">>
}
// becomes
func.func @t(%0: memref<32xf32, "global">, %1: memref<32xf32, "global">) attributes {lb.prim} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : memref<32xf32, "global">) outs(%1 : memref<32xf32, "global">) attrs =  {lb.extents = [32 : i64]} {
  ^bb0(%2: f32, %3: f32):
    %4 = arith.constant -1.280000e+02 : f32
    %5 = arith.maximumf %2, %4 fastmath<nsz,contract> : f32
    %6 = arith.constant 1.270000e+02 : f32
    %7 = arith.minimumf %5, %6 fastmath<nsz,contract> : f32
    %8 = arith.fptosi %7 : f32 to i8
    %9 = arith.sitofp %8 : i8 to f32
    linalg.yield %9 : f32
  }
  func.return
}
func.func @main(%0: tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xf32, #lb.vdevice<0, "global">> attributes {lb.input_names = ["a"], lb.output_names = ["b"]} {
  %1 = bufferization.alloc_tensor() : tensor<32xf32, #lb.vdevice<0, "global">>
  %2 = "lb.call"(%0, %1) {callee = @t, operandSegmentSizes = array<i32: 1, 1>} : (tensor<32xf32, #lb.vdevice<0, "global">>, tensor<32xf32, #lb.vdevice<0, "global">>) -> tensor<32xf32, #lb.vdevice<0, "global">>
  func.return %2 : tensor<32xf32, #lb.vdevice<0, "global">>
}
