; How AArch64 computes with floats is one register of each thread, FPCR: rounding, traps, denormals.
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

define internal i64 @"landbridge.float_control"() #0 {
  %control = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %control
}

define internal void @"landbridge.set_float_control"(i64 %control) #0 {
  call void @llvm.aarch64.set.fpcr(i64 %control)
  ret void
}
