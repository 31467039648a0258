; How long a spin took: its iterations, as programs may not read the counter of cycles. An iteration lasts as long as an
; instruction barrier, some 20 ns; yield would be over at once.
declare void @llvm.arm.isb(i32)

define internal i64 @"landbridge.spent"(i64 %iterations) #0 {
  ret i64 %iterations
}

define internal void @"landbridge.pause"() #0 {
  call void @llvm.arm.isb(i32 15)
  ret void
}
