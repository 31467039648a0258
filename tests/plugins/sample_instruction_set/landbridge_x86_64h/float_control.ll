; How x86-64 computes with floats is one register of each thread, MXCSR: rounding, traps, flags, denormals. Another
; instruction set defines the same two functions, and its own numbers for KEEP and FLUSH.
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define internal i64 @"landbridge.float_control"() #0 {
  %at = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %now = load i32, ptr %at, align 4
  %control = zext i32 %now to i64
  ret i64 %control
}

define internal void @"landbridge.set_float_control"(i64 %control) #0 {
  %at = alloca i32, align 4
  %new = trunc i64 %control to i32
  store i32 %new, ptr %at, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}
