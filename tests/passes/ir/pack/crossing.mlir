// pack.crossing moves a tensor to memory of rows in its packed form alone, whose rows are blocks of channels.

!x = tensor<1x16x2x2xf32, #lb.vdevice<0, "global">>
!mx = memref<1x16x2x2xf32, "global">
!w = tensor<16x16xf32, #lb.vdevice<0, "global">>
!mw = memref<16x16xf32, "global">
!xb = tensor<1x2x2x2x8xf32, #lb.vdevice<0, "global">>
!mxb = memref<1x2x2x2x8xf32, "global">
!wb = tensor<2x2x8x8xf32, #lb.vdevice<0, "global">>
!mwb = memref<2x2x8x8xf32, "global">
#data = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>
#weights = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4)>
#result = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
!rows = tensor<1x16x2x2xf32, #lb.vdevice<0, "global.rows">>
!mrows = memref<1x16x2x2xf32, "global.rows">
!rowsb = tensor<1x2x2x2x8xf32, #lb.vdevice<0, "global.rows">>
!mrowsb = memref<1x2x2x2x8xf32, "global.rows">
!fast = tensor<1x16x2x2xf32, #lb.vdevice<0, "global.fast">>
!mfast = memref<1x16x2x2xf32, "global.fast">

// ---- the image is packed before it crosses
// target npu: {"kind": "llvm", "mcpu": "x86-64-v3", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.rows", "host_access": "read_write", "coherent": true, "ndim": 2, "row_alignment": 32}, {"scope": "global.fast", "host_access": "read_write", "coherent": true}]}
func.func @conv(%x: !mrows, %w: !mw, %y: !mx) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mx)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mrows, !mw) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %c = "lb.to_vdevice"(%x) {node = "x"} : (!x) -> !rows
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%c, %w, %d_y) {callee = @conv, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!rows, !w, !x) -> !x
  func.return %y : !x
}
// becomes
func.func @conv(%x: !mrows, %w: !mw, %y: !mx) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mx)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mrows, !mw) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %0 = "lb.pack"(%x) {axes = [1 : i64], tiles = [8 : i64]} : (!x) -> !xb
  %1 = "lb.to_vdevice"(%0) {node = "x"} : (!xb) -> !rowsb
  %2 = "lb.constant"() {symbol = @w_1} : () -> !wb
  %3 = bufferization.alloc_tensor() : !xb
  %4 = "lb.call"(%1, %2, %3) {callee = @conv_p1, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!rowsb, !wb, !xb) -> !xb
  %y = "lb.unpack"(%4) {axes = [1 : i64], tiles = [8 : i64]} : (!xb) -> !x
  func.return %y : !x
}
func.func @conv_p1(%0: !mrowsb, %1: !mwb, %2: !mxb) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !mxb)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d6)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "parallel"]} ins(%0, %1 : !mrowsb, !mwb) outs(%2 : !mxb) attrs = {lb.extents = [1 : i64, 2 : i64, 2 : i64, 2 : i64, 2 : i64, 8 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}

// ---- not to flat memory, where it is packed
// target npu: {"kind": "llvm", "mcpu": "x86-64-v3", "memory": [{"scope": "global", "host_access": "read_write", "coherent": true}, {"scope": "global.rows", "host_access": "read_write", "coherent": true, "ndim": 2, "row_alignment": 32}, {"scope": "global.fast", "host_access": "read_write", "coherent": true}]}
func.func @conv(%x: !mfast, %w: !mw, %y: !mx) attributes {lb.prim} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mx)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mfast, !mw) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %c = "lb.to_vdevice"(%x) {node = "x"} : (!x) -> !fast
  %w = "lb.constant"() {symbol = @w} : () -> !w
  %d_y = bufferization.alloc_tensor() : !x
  %y = "lb.call"(%c, %w, %d_y) {callee = @conv, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (!fast, !w, !x) -> !x
  func.return %y : !x
}
// becomes
func.func @conv(%x: !mfast, %w: !mw, %y: !mx) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%y : !mx)
  linalg.generic {indexing_maps = [#data, #weights, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : !mfast, !mw) outs(%y : !mx) attrs = {lb.extents = [1 : i64, 16 : i64, 2 : i64, 2 : i64, 16 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
func.func @main(%x: !x) -> !x {
  %c = "lb.to_vdevice"(%x) {node = "x"} : (!x) -> !fast
  %0 = "lb.pack"(%c) {axes = [1 : i64], tiles = [8 : i64]} : (!fast) -> tensor<1x2x2x2x8xf32, #lb.vdevice<0, "global.fast">>
  %1 = "lb.constant"() {symbol = @w_1} : () -> !wb
  %2 = bufferization.alloc_tensor() : !xb
  %3 = "lb.call"(%0, %1, %2) {callee = @conv_p1, node = "conv", operandSegmentSizes = array<i32: 2, 1>} : (tensor<1x2x2x2x8xf32, #lb.vdevice<0, "global.fast">>, !wb, !xb) -> !xb
  %y = "lb.unpack"(%3) {axes = [1 : i64], tiles = [8 : i64]} : (!xb) -> !x
  func.return %y : !x
}
func.func @conv_p1(%0: memref<1x2x2x2x8xf32, "global.fast">, %1: !mwb, %2: !mxb) attributes {lb.prim} {
  %zero = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%zero : f32) outs(%2 : !mxb)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d6)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "parallel"]} ins(%0, %1 : memref<1x2x2x2x8xf32, "global.fast">, !mwb) outs(%2 : !mxb) attrs = {lb.extents = [1 : i64, 2 : i64, 2 : i64, 2 : i64, 2 : i64, 8 : i64, 8 : i64]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  }
  func.return
}
