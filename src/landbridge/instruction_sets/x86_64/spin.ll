; How long a spin took, in units of its own: cycles of the time-stamp counter, which is there and constant on x86-64.
declare i64 @llvm.readcyclecounter()
declare void @llvm.x86.sse2.pause()

define internal i64 @"landbridge.spent"(i64 %iterations) #0 {
  %now = call i64 @llvm.readcyclecounter()
  ret i64 %now
}

define internal void @"landbridge.pause"() #0 {
  call void @llvm.x86.sse2.pause()
  ret void
}
