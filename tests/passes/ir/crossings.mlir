// crossings makes a crossing a view where both sides use the same memory, and puts inputs and outputs there.

!a = tensor<4xf32, #lb.vdevice<0, "global">>
!b = tensor<4xf32, #lb.vdevice<1, "global">>
!m = memref<4xf32, "global">

// ---- a GPU that uses the CPU's memory: no copy, and inputs and outputs are the CPU's
// target gpu: {"kind": "opencl", "shares": [["cpu", "global"]]}
// target cpu: llvm -mcpu=x86-64-v3
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %d = bufferization.alloc_tensor() : !a
  %y = "lb.call"(%x, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  %c = "lb.to_vdevice"(%y) : (!a) -> !b
  %e = bufferization.alloc_tensor() : !b
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %back = "lb.to_vdevice"(%z) : (!b) -> !a
  func.return %back : !a
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !a) -> !a {
  %x_1 = "lb.to_vdevice"(%x) {node = "host memory", view} : (!a) -> !b
  %d = bufferization.alloc_tensor() : !b
  %y = "lb.call"(%x_1, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!b, !b) -> !b
  %c = "lb.to_vdevice"(%y) {view} : (!b) -> !a
  %e = bufferization.alloc_tensor() : !a
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!a, !a) -> !a
  func.return %z : !a
}

// ---- there_and_back: with memory of its own a crossing copies, but not there and back again
// target gpu: {"kind": "opencl", "shares": []}
// target cpu: llvm -mcpu=x86-64-v3
func.func @main(%x: !a) -> (!a, !b) {
  %c = "lb.to_vdevice"(%x) : (!a) -> !b
  %back = "lb.to_vdevice"(%c) : (!b) -> !a
  func.return %back, %c : !a, !b
}
// becomes
func.func @main(%x: !a) -> (!a, !b) {
  %c = "lb.to_vdevice"(%x) : (!a) -> !b
  func.return %x, %c : !a, !b
}

// ---- nowhere: a crossing to where the tensor is
func.func @main(%x: !a) -> !a {
  %c = "lb.to_vdevice"(%x) : (!a) -> !a
  func.return %c : !a
}
// becomes
func.func @main(%x: !a) -> !a {
  func.return %x : !a
}
