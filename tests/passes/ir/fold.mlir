// fold computes layouts of constants, does equal operations once, and drops what nobody uses.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!m = memref<4xf32, "global">
!p = tensor<2x2xf32, #lb.vdevice<0, "global">>

// ---- packed: a constant is reordered now, not at run time
func.func @main() -> !p {
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %p = "lb.pack"(%w) {axes = [0 : i64], tiles = [2 : i64]} : (!t) -> !p
  func.return %p : !p
}
// becomes
func.func @main() -> !p {
  %p = "lb.constant"() {symbol = @w_1} : () -> !p
  func.return %p : !p
}

// ---- unpacked: and back
func.func @main() -> !t {
  %w = "lb.constant"() {symbol = @w} : () -> !p
  %t = "lb.unpack"(%w) {axes = [0 : i64], tiles = [2 : i64]} : (!p) -> !t
  func.return %t : !t
}
// becomes
func.func @main() -> !t {
  %t = "lb.constant"() {symbol = @w_1} : () -> !t
  func.return %t : !t
}

// ---- viewed: a part of a constant is a constant
func.func @main() -> tensor<2xf32, #lb.vdevice<0, "global">> {
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %v = "lb.view"(%w) {offset = 2 : i64} : (!t) -> tensor<2xf32, #lb.vdevice<0, "global">>
  func.return %v : tensor<2xf32, #lb.vdevice<0, "global">>
}
// becomes
func.func @main() -> tensor<2xf32, #lb.vdevice<0, "global">> {
  %v = "lb.constant"() {symbol = @w_1} : () -> tensor<2xf32, #lb.vdevice<0, "global">>
  func.return %v : tensor<2xf32, #lb.vdevice<0, "global">>
}

// ---- carried: a constant is put where it is read
// target cpu: llvm -mcpu=x86-64-v3
// target npu: llvm -mcpu=x86-64-v4
func.func @main() -> tensor<4xf32, #lb.vdevice<1, "global">> {
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %c = "lb.to_vdevice"(%w) : (!t) -> tensor<4xf32, #lb.vdevice<1, "global">>
  func.return %c : tensor<4xf32, #lb.vdevice<1, "global">>
}
// becomes
func.func @main() -> tensor<4xf32, #lb.vdevice<1, "global">> {
  %c = "lb.constant"() {symbol = @w} : () -> tensor<4xf32, #lb.vdevice<1, "global">>
  func.return %c : tensor<4xf32, #lb.vdevice<1, "global">>
}

// ---- joined: constants are concatenated, and not beside anything else
func.func @main(%x: !t) -> (tensor<8xf32, #lb.vdevice<0, "global">>, tensor<8xf32, #lb.vdevice<0, "global">>) {
  %v = "lb.constant"() {symbol = @v} : () -> !t
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %c = "lb.concat"(%v, %w) {axis = 0 : i64} : (!t, !t) -> tensor<8xf32, #lb.vdevice<0, "global">>
  %d = "lb.concat"(%v, %x) {axis = 0 : i64} : (!t, !t) -> tensor<8xf32, #lb.vdevice<0, "global">>
  func.return %c, %d : tensor<8xf32, #lb.vdevice<0, "global">>, tensor<8xf32, #lb.vdevice<0, "global">>
}
// becomes
func.func @main(%x: !t) -> (tensor<8xf32, #lb.vdevice<0, "global">>, tensor<8xf32, #lb.vdevice<0, "global">>) {
  %v = "lb.constant"() {symbol = @v} : () -> !t
  %c = "lb.constant"() {symbol = @v_1} : () -> tensor<8xf32, #lb.vdevice<0, "global">>
  %d = "lb.concat"(%v, %x) {axis = 0 : i64} : (!t, !t) -> tensor<8xf32, #lb.vdevice<0, "global">>
  func.return %c, %d : tensor<8xf32, #lb.vdevice<0, "global">>, tensor<8xf32, #lb.vdevice<0, "global">>
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
