; How RISC-V computes with floats is one register of each thread, fcsr: rounding and flags. It has no traps, and denormals
; are computed with in any case.
declare i64 @llvm.get.fpenv.i64()
declare void @llvm.set.fpenv.i64(i64)

define internal i64 @"landbridge.float_control"() #0 {
  %control = call i64 @llvm.get.fpenv.i64()
  ret i64 %control
}

define internal void @"landbridge.set_float_control"(i64 %control) #0 {
  call void @llvm.set.fpenv.i64(i64 %control)
  ret void
}
