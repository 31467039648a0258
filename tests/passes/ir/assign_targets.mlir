// assign_targets states which target each PrimFunc is compiled for; one that two call is cloned.

!cpu = tensor<4xf32, #lb.vdevice<0, "global">>
!npu = tensor<4xf32, #lb.vdevice<1, "global">>
!m = memref<4xf32, "global">

// ---- a kernel that two targets call
// target cpu: llvm -mcpu=x86-64-v3
// target npu: llvm -mcpu=x86-64-v4
func.func @k(%x: !m, %y: !m) attributes {lb.prim} {
  func.return
}
func.func @main(%x: !cpu) -> !npu {
  %d = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %c = "lb.to_vdevice"(%y) : (!cpu) -> !npu
  %e = bufferization.alloc_tensor() : !npu
  %z = "lb.call"(%c, %e) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!npu, !npu) -> !npu
  func.return %z : !npu
}
// becomes
func.func @k(%x: !m, %y: !m) attributes {lb.prim, lb.target = 0 : i64} {
  func.return
}
func.func @k_t1(%x: !m, %y: !m) attributes {lb.prim, lb.target = 1 : i64} {
  func.return
}
func.func @main(%x: !cpu) -> !npu {
  %d = bufferization.alloc_tensor() : !cpu
  %y = "lb.call"(%x, %d) {callee = @k, operandSegmentSizes = array<i32: 1, 1>} : (!cpu, !cpu) -> !cpu
  %c = "lb.to_vdevice"(%y) : (!cpu) -> !npu
  %e = bufferization.alloc_tensor() : !npu
  %z = "lb.call"(%c, %e) {callee = @k_t1, operandSegmentSizes = array<i32: 1, 1>} : (!npu, !npu) -> !npu
  func.return %z : !npu
}
