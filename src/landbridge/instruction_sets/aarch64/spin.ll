; How long a spin took: its iterations, as counters of AArch64 differ by a factor of 50, and some stand still. An iteration lasts
; as long as an instruction barrier, some 20 ns; yield would be over at once.
declare void @llvm.aarch64.isb(i32)

define internal i64 @"landbridge.spent"(i64 %iterations) #0 {
  ret i64 %iterations
}

define internal void @"landbridge.pause"() #0 {
  call void @llvm.aarch64.isb(i32 15)
  ret void
}
