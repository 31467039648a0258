// fold computes layouts of constants, does equal operations once, and drops what nobody uses.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!m = memref<4xf32, "global">

// ---- a constant is reordered now, not at run time
func.func @main() -> tensor<2x2xf32, #lb.vdevice<0, "global">> {
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %p = "lb.pack"(%w) {axes = [0 : i64], tiles = [2 : i64]} : (!t) -> tensor<2x2xf32, #lb.vdevice<0, "global">>
  func.return %p : tensor<2x2xf32, #lb.vdevice<0, "global">>
}
// becomes
func.func @main() -> tensor<2x2xf32, #lb.vdevice<0, "global">> {
  %p = "lb.constant"() {symbol = @w_1} : () -> tensor<2x2xf32, #lb.vdevice<0, "global">>
  func.return %p : tensor<2x2xf32, #lb.vdevice<0, "global">>
}

// ---- what is computed twice is computed once, and kernels that nothing calls then go
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @unused(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !t) -> (!t, !t) {
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %e = bufferization.alloc_tensor() : !t
  %z = "lb.call"(%x, %e) {callee = @k, node = "b", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  %f = bufferization.alloc_tensor() : !t
  %dead = "lb.call"(%x, %f) {callee = @unused, operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y, %z : !t, !t
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !t) -> (!t, !t) {
  %d = bufferization.alloc_tensor() : !t
  %y = "lb.call"(%x, %d) {callee = @k, node = "a", operandSegmentSizes = array<i32: 1, 1>} : (!t, !t) -> !t
  func.return %y, %y : !t, !t
}
