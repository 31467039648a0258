; How ARMv7 computes with floats is one register of each thread, FPSCR: rounding, traps, denormals. NEON has no such
; register: it rounds to nearest, never traps and takes denormals for zeros.
declare i32 @llvm.arm.get.fpscr()
declare void @llvm.arm.set.fpscr(i32)

define internal i64 @"landbridge.float_control"() #0 {
  %now = call i32 @llvm.arm.get.fpscr()
  %control = zext i32 %now to i64
  ret i64 %control
}

define internal void @"landbridge.set_float_control"(i64 %control) #0 {
  %new = trunc i64 %control to i32
  call void @llvm.arm.set.fpscr(i32 %new)
  ret void
}
