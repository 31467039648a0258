// fold.to_vdevice loads constants where they are read.

!t = tensor<4xf32, #lb.vdevice<0, "global">>
!far = tensor<4xf32, #lb.vdevice<1, "global">>

// ---- a constant is loaded on the device that reads it, and not moved there
// target cpu: llvm -mcpu=x86-64-v3
// target npu: llvm -mcpu=x86-64-v4
func.func @main() -> !far {
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %c = "lb.to_vdevice"(%w) : (!t) -> !far
  func.return %c : !far
}
// becomes
func.func @main() -> !far {
  %c = "lb.constant"() {symbol = @w} : () -> !far
  func.return %c : !far
}

// ---- not an input
// target cpu: llvm -mcpu=x86-64-v3
// target npu: llvm -mcpu=x86-64-v4
func.func @main(%x: !t) -> !far {
  %c = "lb.to_vdevice"(%x) : (!t) -> !far
  func.return %c : !far
}
// unchanged
