// dedup keeps one of PrimFuncs that are equal but for their names.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!m = memref<4xf32, "global">
#id = affine_map<(d0) -> (d0)>

// ---- equal kernels become one
func.func @double_1(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @double_2(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d) {callee = @double_1, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %e = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%y, %e) {callee = @double_2, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %z : !t
}
// becomes
func.func @double_1(%x: !m, %y: !m) attributes {lb.prim} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !m) outs(%y : !m) attrs = {lb.extents = [4 : i64]} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  func.return
}
func.func @main(%x: !t) -> !t {
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d) {callee = @double_1, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %e = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%y, %e) {callee = @double_1, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %z : !t
}

// ---- kernels for two targets stay two
func.func @k_1(%x: !m, %y: !m) attributes {lb.prim, lb.target = 0 : i64} {
  func.return
}
func.func @k_2(%x: !m, %y: !m) attributes {lb.prim, lb.target = 1 : i64} {
  func.return
}
func.func @main(%x: !t) -> !t {
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d) {callee = @k_1, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %e = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%y, %e) {callee = @k_2, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %z : !t
}
// becomes
func.func @k_1(%x: !m, %y: !m) attributes {lb.prim, lb.target = 0 : i64} {
  func.return
}
func.func @k_2(%x: !m, %y: !m) attributes {lb.prim, lb.target = 1 : i64} {
  func.return
}
func.func @main(%x: !t) -> !t {
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d) {callee = @k_1, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %e = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%y, %e) {callee = @k_2, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %z : !t
}
