; How long a spin took, in cycles of the time-stamp counter; a pause here is a memory fence.
declare i64 @llvm.readcyclecounter()
declare void @llvm.x86.sse2.mfence()

define internal i64 @"landbridge.spent"(i64 %iterations) #0 {
  %now = call i64 @llvm.readcyclecounter()
  ret i64 %now
}

define internal void @"landbridge.pause"() #0 {
  call void @llvm.x86.sse2.mfence()
  ret void
}
